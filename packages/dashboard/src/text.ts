/** Longer reasons are cut. */
const longest = 2000;

/** The message of anything that was thrown. */
export function textOf(error: unknown): string {
  try {
    const { message } = (error ?? {}) as { readonly message?: unknown };
    return (typeof message === "string" ? message : String(error)).slice(0, longest);
  } catch {
    return "The reason cannot be read.";
  }
}
