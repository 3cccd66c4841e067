/** What went wrong, as a word that stays the same from release to release. */
export type ErrorCode =
  | "FLOODGATE_CONFLICTING_OPTIONS"
  | "FLOODGATE_DIFFERENT_STORES"
  | "FLOODGATE_DUPLICATE_NAME"
  | "FLOODGATE_FOREIGN_VALUE"
  | "FLOODGATE_FORGEABLE_CLIENT_IP"
  | "FLOODGATE_INVALID_CLOCK"
  | "FLOODGATE_INVALID_COST"
  | "FLOODGATE_INVALID_DURATION"
  | "FLOODGATE_INVALID_KEY"
  | "FLOODGATE_INVALID_OPTION"
  | "FLOODGATE_MISSING_KEY"
  | "FLOODGATE_MISSING_LIMIT"
  | "FLOODGATE_NAME_TAKEN"
  | "FLOODGATE_NO_CLIENT_IP"
  | "FLOODGATE_NO_POLICY"
  | "FLOODGATE_NO_ROUTE"
  | "FLOODGATE_POLICY_TOO_LARGE"
  | "FLOODGATE_STORE_FAULT"
  | "FLOODGATE_STORE_TIMEOUT"
  | "FLOODGATE_UNKNOWN_ALGORITHM"
  | "FLOODGATE_UNKNOWN_KEY"
  | "FLOODGATE_UNKNOWN_OPTION";

/**
 * A mistake or a fault, never a rejected request (that is a decision).
 * `code` is stable; the message says what is wrong, what was given and what to write.
 */
export class FloodgateError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "FloodgateError";
    this.code = code;
  }
}

/** A value as it reads best in an error message: short, and with its type where that is the surprise. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return value.name === "" ? "a function" : `the function ${value.name}`;
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : `an array of ${value.length}`;
  const keys = Object.keys(value);
  return keys.length === 0 ? "an empty object" : `an object with ${keys.slice(0, 6).join(", ")}`;
}
