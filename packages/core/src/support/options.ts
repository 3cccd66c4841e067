import { type ErrorCode, FloodgateError, invalidOption, kindOf, short, shown, wrongOption } from "./errors.js";
import { foreignAdvice } from "./foreign-options.js";

/**
 * Rejects options that are not an object, options that every object inherits, and unknown options. For an option of another library, the error
 * names ours.
 */
export function checkOptions(where: string, options: unknown, known: readonly string[], example: string): void {
  // Rejects maps, regular expressions and the like. Class instances and objects of another realm are accepted.
  if (kindOf(options) !== "Object") {
    throw invalidOption(`${where} takes an object of options, but was given ${shown(options)}. Write ${example}.`);
  }
  const inherited = known.find((option) => option in {});
  if (inherited !== undefined) throw invalidOption(`${where}: delete \`${inherited}\` from Object.prototype.`);
  const unknown = Object.keys(options as object).filter((word) => !known.includes(word));
  if (unknown.length === 0) return;
  throw new FloodgateError("FLOODGATE_UNKNOWN_OPTION", unknownOptions(where, options as Record<string, unknown>, unknown, known), {
    at: unknown.slice(0, 1),
  });
}

/** The most options that one error lists. Users who migrate from another library rename several. */
const maxUnknown = 12;

function unknownOptions(where: string, options: Readonly<Record<string, unknown>>, unknown: string[], known: readonly string[]): string {
  const byAdvice = new Map<string, string[]>();
  for (const word of unknown.slice(0, maxUnknown)) {
    const near = nearest(word, known);
    const usual = `${near === undefined ? "" : `Did you mean \`${near}\`? `}The options are ${known.join(", ")}.`;
    const advice = foreignAdvice(word, options, known) ?? usual;
    byAdvice.set(advice, [...(byAdvice.get(advice) ?? []), `\`${short(word)}\``]);
  }
  const sentences = [...byAdvice].map(
    ([advice, words], i) => `${i === 0 ? where : "It"} has no option${words.length > 1 ? "s" : ""} ${words.join(" and ")}. ${advice}`,
  );
  return sentences.join(" ");
}

/** What a number must be, for an error. It names the upper bound only if the value is above it. */
export const wholeOf = (least: number, value: unknown): string =>
  `a whole number of at least ${least}${typeof value === "number" && value >= 2 ** 53 ? " and below 2^53" : ""}`;

/** Checks for a whole number of at least `least` and below 2^53. */
export function wholeNumber(where: string, option: string, value: unknown, least = 1, example = 100): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
  throw invalidOption(
    `${where}: \`${option}\` must be ${wholeOf(least, value)}, but was ${shown(value)}${Number.isNaN(value) ? `: a variable is not set. Write ${option}: Number(process.env.${option.toUpperCase()} ?? ${example})` : `. Write ${option}: ${example}`}.`,
    [option],
  );
}

/** Checks a policy's quota: a whole number of at least 1, or 0, which rejects everything. */
export function quotaNumber(where: string, option: string, value: unknown, example = 100): number {
  return value === 0 ? 0 : wholeNumber(where, option, value, 1, example);
}

/**
 * Checks a secret. The error does not show it.
 * @param variable the environment variable that the error suggests.
 */
export function secretText(where: string, option: string, value: unknown, variable: string): string {
  if (typeof value === "string" && value.length >= 32) return value;
  const type = Array.isArray(value) ? "an array" : value === null ? "null" : typeof value;
  const actual = typeof value === "string" ? `has ${value.length}` : `was ${type}`;
  throw invalidOption(
    `${where}: \`${option}\` must be a string of at least 32 characters, but ${actual}. Write ${option}: process.env.${variable}, and set it to the output of: openssl rand -hex 32.`,
    [option],
  );
}

/** Checks for one of a few words. The error lists them. */
export function oneOf<const Word extends string>(
  where: string,
  option: string,
  value: unknown,
  words: readonly Word[],
  code: ErrorCode = "FLOODGATE_INVALID_OPTION",
): Word {
  if ((words as readonly unknown[]).includes(value)) return value as Word;
  throw new FloodgateError(
    code,
    `${where}: \`${option}\` must be one of ${words.map(shown).join(", ")}, but ${value === undefined ? "is missing" : `was ${shown(value)}`}.${didYouMean(value, words)}`,
    { at: [option] },
  );
}

export function flag(where: string, option: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw wrongOption(where, option, "true or false", value, `${option}: true`);
}

/** Checks for a function or undefined. The error shows an example. */
export function functionOrNothing(where: string, option: string, value: unknown, example: string): void {
  if (value === undefined || typeof value === "function") return;
  throw wrongOption(where, option, "a function", value, `${option}: ${example}`);
}

/**
 * The answer of a yes-or-no function of the app. Undefined and null mean no.
 * @throws FloodgateError `FLOODGATE_INVALID_ANSWER` for anything else: `"false"` or `0` could mean either.
 */
export function yesOrNo(where: string, option: string, answer: unknown, example: string): boolean {
  if (typeof answer === "boolean") return answer;
  if (answer === undefined || answer === null) return false;
  throw new FloodgateError(
    "FLOODGATE_INVALID_ANSWER",
    `${where}: \`${option}\` must answer true or false, but answered ${shown(answer)}. Write ${option}: ${example}.`,
    { at: [option] },
  );
}

/** ` Did you mean "limit"?`, for an error. Empty if no known word is close. */
export function didYouMean(word: unknown, known: readonly string[]): string {
  const near = typeof word === "string" ? nearest(word, known) : undefined;
  return near === undefined ? "" : ` Did you mean ${shown(near)}?`;
}

/** The known word closest to `word`, if it is close enough to be a misspelling. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > 40) return undefined;
  let best: string | undefined;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

/** Whether a string is a valid header name: a token (RFC 9110 §5.6.2). */
export function isHeaderName(name: unknown): name is string {
  return typeof name === "string" && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name);
}
