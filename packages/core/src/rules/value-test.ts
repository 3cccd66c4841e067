/** A condition on one value, such as that of a header. */
export interface ValueTest {
  /** The matching values, if they are a fixed list without `*`. */
  readonly values: readonly string[] | undefined;
  /** @param value undefined if the header or entry is missing. */
  fits(value: string | undefined): boolean;
}

/** True for any value, false for none; or one of these texts, in which `*` stands for any characters. */
export function valueTest(expected: boolean | readonly string[]): ValueTest {
  if (typeof expected === "boolean") return { values: undefined, fits: (given) => (given !== undefined) === expected };
  const patterns = expected.map((text) => text.split("*"));
  return {
    values: patterns.every((parts) => parts.length === 1) ? expected : undefined,
    fits: (given) => given !== undefined && patterns.some((parts) => fitsParts(given, parts)),
  };
}

/** Whether a text consists of these parts with anything between them. Each part is matched as early as possible, the last at the end. */
function fitsParts(text: string, parts: readonly string[]): boolean {
  const last = parts[parts.length - 1] as string;
  if (parts.length === 1) return text === last;
  const first = parts[0] as string;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let from = first.length;
  for (let i = 1; i < parts.length - 1; i++) {
    const part = parts[i] as string;
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return from <= text.length - last.length;
}
