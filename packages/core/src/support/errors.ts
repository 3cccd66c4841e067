import { attempt } from "./promises.js";

/** Identifies the kind of error. Codes do not change between releases. */
export type ErrorCode =
  | "FLOODGATE_CANNOT_LISTEN"
  | "FLOODGATE_CONFLICTING_OPTIONS"
  | "FLOODGATE_DIFFERENT_STORES"
  | "FLOODGATE_DUPLICATE_NAME"
  | "FLOODGATE_FOREIGN_CHARGE"
  | "FLOODGATE_FOREIGN_REQUEST"
  | "FLOODGATE_FOREIGN_VALUE"
  | "FLOODGATE_FORGEABLE_CLIENT_IP"
  | "FLOODGATE_INVALID_ANSWER"
  | "FLOODGATE_INVALID_CLOCK"
  | "FLOODGATE_INVALID_COST"
  | "FLOODGATE_INVALID_DURATION"
  | "FLOODGATE_INVALID_KEY"
  | "FLOODGATE_INVALID_OPTION"
  | "FLOODGATE_INVALID_RECEIPT"
  | "FLOODGATE_INVALID_RULES"
  | "FLOODGATE_LIMITED"
  | "FLOODGATE_MISSING_KEY"
  | "FLOODGATE_MISSING_LIMIT"
  | "FLOODGATE_MISSING_PLAN"
  | "FLOODGATE_MISSING_TABLE"
  | "FLOODGATE_NAME_TAKEN"
  | "FLOODGATE_NO_CLIENT_IP"
  | "FLOODGATE_NO_ERROR"
  | "FLOODGATE_NO_POLICY"
  | "FLOODGATE_NO_REQUESTS"
  | "FLOODGATE_NO_ROUTE"
  | "FLOODGATE_POLICY_TOO_LARGE"
  | "FLOODGATE_QUEUE_TIMEOUT"
  | "FLOODGATE_RULES_CONFLICT"
  | "FLOODGATE_RULES_UNAVAILABLE"
  | "FLOODGATE_STORE_FAULT"
  | "FLOODGATE_STORE_TIMEOUT"
  | "FLOODGATE_UNKNOWN_ALGORITHM"
  | "FLOODGATE_UNKNOWN_COST"
  | "FLOODGATE_UNKNOWN_KEY"
  | "FLOODGATE_UNKNOWN_OPTION"
  | "FLOODGATE_UNKNOWN_RULE";

/**
 * An error of configuration, input or a store. A rejected request is a decision, and an error only where the app asks for one (`enforce`).
 * `code` is stable. The message says what is wrong, what was given and what to write instead.
 */
export class FloodgateError extends Error {
  // A field of the bundle is defined, not assigned, which fails if the app has frozen `Error.prototype`.
  override name = "FloodgateError";
  readonly code: ErrorCode;
  /** The path of the mistake in the options, if known: `["rules", 2, "policy", "window"]`. */
  at: readonly (string | number)[];

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown; at?: readonly (string | number)[] }) {
    super(printable(message), options);
    this.code = code;
    this.at = options?.at ?? [];
  }
}

/**
 * The error of an option with a wrong value: what it must be, what was given, and what to write.
 * @param at the path of the option. Empty if the caller adds it: see `atPath`.
 */
export function wrongOption(
  where: string,
  option: string,
  must: string,
  given: unknown,
  write: string,
  at: readonly (string | number)[] = [option],
): FloodgateError {
  return invalidOption(`${where}: \`${option}\` must be ${must}, but was ${shown(given)}. Write ${write}.`, at);
}

/** The error of an option with a wrong value, in words of its own. */
export function invalidOption(message: string, at: readonly (string | number)[] = []): FloodgateError {
  return new FloodgateError("FLOODGATE_INVALID_OPTION", message, { at });
}

/** The error of options that cannot stand together. */
export function conflict(message: string, at: readonly (string | number)[] = []): FloodgateError {
  return new FloodgateError("FLOODGATE_CONFLICTING_OPTIONS", message, { at });
}

/** Escapes control characters except line breaks and tabs, because untrusted text in a message could control a terminal. */
export function printable(text: string): string {
  return text.replace(/[^\n\t\P{C}]/gu, (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`);
}

/**
 * Runs `make` for a part of the options. Its errors get the path of the part in front of their `at`.
 * @param place replaces the function's name that begins a message: `rateLimit: rules[2]`. Default: the message stays.
 */
export function atPath<T>(part: readonly (string | number)[], make: () => T, place = ""): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof FloodgateError) {
      error.at = [...part, ...error.at];
      // Made again, because Node prints the stack of an uncaught error, which begins with its first message.
      if (!error.message.startsWith(place)) throw new FloodgateError(error.code, `${place}: ${error.message.replace(/^\w+: /, "")}`, error);
    }
    throw error;
  }
}

/** A value for an error message: short, with its type if that is the problem. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(short(value));
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return value.name === "" ? "a function" : `the function ${value.name}`;
  if (typeof value !== "object" || value === null) return String(value);
  if (typeof (value as { then?: unknown }).then === "function") return "a promise: await it first";
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : `an array of ${value.length}`;
  const kind = kindOf(value);
  if (kind !== "Object") return `${/^[AEIO]/.test(kind) ? "an" : "a"} ${kind}`;
  const keys = Object.keys(value);
  return keys.length === 0 ? "an empty object" : `an object with ${keys.slice(0, 6).join(", ")}`;
}

/** `"Object"` for a plain object, an instance of a class or an object of another realm; `"Map"`, `"RegExp"` and the like for built-in ones. */
export function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

/** Cuts long texts: a word in a file may have a megabyte. */
export function short(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** The code and message of anything that an app's function threw, even if reading it throws. */
export function reasonOf(thrown: unknown): { readonly code: string | undefined; readonly why: string } {
  try {
    const { code, message } = (thrown ?? {}) as { readonly code?: unknown; readonly message?: unknown };
    return { code: typeof code === "string" ? code : undefined, why: typeof message === "string" ? message : shown(thrown) };
  } catch {
    return { code: undefined, why: "what was thrown cannot be read." };
  }
}

/**
 * Throws what a function of the app has thrown, as an object. Frameworks treat some other values as no error: undefined, for example, or
 * "route" in Express.
 */
export function throwFault(reason: unknown): never {
  if (typeof reason === "object" && reason !== null) throw reason;
  throw new FloodgateError(
    "FLOODGATE_NO_ERROR",
    `A function of the app failed with ${shown(reason)}, which is not an error. Write throw new Error("why").`,
    { cause: reason },
  );
}

/** Runs a function of the app. What it throws or rejects with becomes an error object. */
export function withFaults<T>(run: () => T): T {
  return attempt<T>(run, throwFault) as T;
}
