import { STATUS_CODES } from "node:http";
import { type ErrorCode, FloodgateError } from "@floodgate/core";

/** One mistake in a request's body. */
export interface Mistake {
  /** Where: `checks[0].cost`. Empty for the body itself. */
  readonly at: string;
  readonly message: string;
}

/** An answer of the API that is no result (RFC 9457). */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;

  /** @param detail what is wrong, what was given and what to write. */
  constructor(
    status: number,
    code: string,
    detail: string,
    { mistakes, headers = {} }: { readonly mistakes?: readonly Mistake[]; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail);
    // Node has the older name.
    const title = status === 413 ? "Content Too Large" : (STATUS_CODES[status] ?? "Error");
    const type = status === 503 ? "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity" : "about:blank";
    this.status = status;
    this.code = code;
    this.body = { type, title, status, detail, code, ...(mistakes !== undefined && { errors: mistakes }) };
    this.headers = headers;
  }
}

/** The status of an error of core. Codes that are not here are mistakes of the request. */
const statuses: Partial<Record<ErrorCode, number>> = {
  FLOODGATE_UNKNOWN_RULE: 404,
  FLOODGATE_STORE_FAULT: 503,
  FLOODGATE_STORE_TIMEOUT: 503,
  FLOODGATE_FOREIGN_VALUE: 503,
};

/** What the caller gets for anything that a handler throws; undefined if it must not learn the reason. */
export function problemOf(error: unknown): Problem | undefined {
  if (error instanceof Problem) return error;
  if (!(error instanceof FloodgateError)) return undefined;
  const status = statuses[error.code] ?? 400;
  return new Problem(status, error.code, error.message, status === 503 ? { headers: { "Retry-After": "1" } } : {});
}
