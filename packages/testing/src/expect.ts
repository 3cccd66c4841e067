import { checkOptions } from "@floodgate/core/store";

/** A response of `fetch`, supertest, Fastify's `inject`, or another client that names its parts in the same way. */
export interface TestedResponse {
  readonly status?: number | undefined;
  readonly statusCode?: number | undefined;
  readonly headers: { get(name: string): unknown } | { readonly [name: string]: unknown };
  readonly body?: unknown;
  readonly text?: unknown;
}

/** What a response says of limits. */
interface Seen {
  readonly status: number | undefined;
  /** In seconds. */
  readonly retryAfter: number | undefined;
  /** The fewest units that a limit has left. */
  readonly remaining: number | undefined;
  /** The names of the limits that rejected. Undefined if the response does not say so. */
  readonly by: readonly string[] | undefined;
  readonly text: string | undefined;
  /** The response for an error message, a part a line. */
  readonly shown: string;
}

/**
 * Asserts that a limit has rejected a request: its response is a 429.
 *
 *     expectLimited(response, { by: "login", retryAfter: 61 });
 *
 * @param expected `by`: the name of a limit that rejected. `retryAfter`: the seconds in `Retry-After`.
 * @throws Error that says what was seen; FloodgateError `FLOODGATE_UNKNOWN_OPTION` if something else is expected.
 */
export function expectLimited(response: TestedResponse, expected: { readonly by?: string; readonly retryAfter?: number } = {}): void {
  checkOptions("expectLimited", expected, ["by", "retryAfter"], 'expectLimited(response, { by: "login", retryAfter: 61 })');
  const seen = see(response);
  const { by, retryAfter } = expected;
  const fail = (message: string): never => failWith(expectLimited, message, seen);
  if (seen.status !== 429) fail(`The request should be limited, but the status of its response is ${seen.status}${hint(seen)}.`);
  if (by !== undefined && seen.by?.includes(by) !== true) {
    const actual = seen.by === undefined ? "the response does not say which limit rejected it" : `it was limited by ${names(seen.by)}`;
    fail(`The request should be limited by ${names([by])}, but ${actual}.`);
  }
  if (retryAfter !== undefined && seen.retryAfter !== retryAfter) {
    const actual = seen.retryAfter === undefined ? "has no Retry-After" : `says ${seen.retryAfter}`;
    fail(`The request should be limited with Retry-After: ${retryAfter}, but the response ${actual}.`);
  }
}

/**
 * Asserts that no limit has rejected a request: the status of its response is neither 429 nor 5xx. A 5xx answers before a limit could, or
 * because the store failed.
 *
 *     expectNotLimited(response, { remaining: 2 });
 *
 * @param expected `remaining`: the units that the limit has left; with several limits, the fewest.
 * @throws Error that says what was seen; FloodgateError `FLOODGATE_UNKNOWN_OPTION` if something else is expected.
 */
export function expectNotLimited(response: TestedResponse, expected: { readonly remaining?: number } = {}): void {
  checkOptions("expectNotLimited", expected, ["remaining"], "expectNotLimited(response, { remaining: 2 })");
  const seen = see(response);
  const { remaining } = expected;
  const fail = (message: string): never => failWith(expectNotLimited, message, seen);
  const { status = 500 } = seen;
  if (status === 429) fail(`The request should pass, but ${seen.by === undefined ? "a limit" : names(seen.by)} rejected it.`);
  if (status >= 500) fail(`The request should pass, but the status of its response is ${seen.status}${hint(seen)}.`);
  if (remaining !== undefined && seen.remaining !== remaining) {
    const actual = seen.remaining === undefined ? `has ${uncounted}` : `says ${seen.remaining}`;
    fail(`The request should leave ${remaining} units, but the response ${actual}.`);
  }
}

function failWith(by: (...args: never) => unknown, message: string, { shown }: Seen): never {
  // No AssertionError: Jest would add that the compared values do not differ.
  const error = new Error(`${message}\n\n${shown}\n`);
  // The stack begins in the test.
  Error.captureStackTrace(error, by);
  throw error;
}

/** Why a response says nothing of limits. By default, a request passes uncounted if the store fails. */
const uncounted = "no RateLimit header: no limit counted it, its store was too slow or failed, or the option `headers` is false";

/** Why the status may not be the expected one. */
function hint({ status = 0, remaining, text }: Seen): string {
  if (status === 503 && text?.includes("temporary-reduced-capacity")) return ": the store failed, and the limit denies then";
  if (status >= 500) return ": the app failed";
  return remaining === undefined ? `, and it has ${uncounted}` : "";
}

function names(limits: readonly string[]): string {
  return limits.map((name) => JSON.stringify(name)).join(" and ");
}

function see(response: TestedResponse): Seen {
  checkResponse(response);
  const header = headersOf(response);
  const status = response.status ?? response.statusCode;
  const text = [response.text, response.body].find((part) => typeof part === "string" && part !== "") as string | undefined;
  const retryAfter = numberIn(header("retry-after"), /^(\d+)$/);
  const items = [...(header("ratelimit") ?? "").matchAll(/"((?:[^"\\]|\\.)*)";r=(\d+)(?:;t=(\d+))?/g)].map(([, name = "", left, wait]) => ({
    name: name.replace(/\\(.)/g, "$1"),
    remaining: Number(left),
    wait: wait === undefined ? undefined : Number(wait),
  }));
  const remaining =
    items.length > 0
      ? Math.min(...items.map((item) => item.remaining))
      : (numberIn(header("ratelimit"), /remaining=(\d+)/) ??
        numberIn(header("ratelimit-remaining") ?? header("x-ratelimit-remaining"), /^(\d+)$/));
  const said = violated(response.body) ?? violated(text);
  // The wait of the limit that rejected is the longest, and is in Retry-After. Nobody knows the wait for a slot: then Retry-After is 1.
  const possible = items.filter(({ wait }) => wait === retryAfter || (wait === undefined && retryAfter === 1));
  // A limit with units left rejects only a request that costs more. So it allowed the request, if another one has none left.
  const empty = possible.filter((item) => item.remaining === 0);
  const rejecting = retryAfter === undefined || empty.length === 0 ? possible : empty;
  const by = said ?? (rejecting.length === 0 ? undefined : rejecting.map(({ name }) => name));
  const shown = ["RateLimit-Policy", "RateLimit", "RateLimit-Remaining", "X-RateLimit-Remaining", "Retry-After", "Content-Type"].flatMap(
    (name) => (header(name.toLowerCase()) === undefined ? [] : [`  ${name}: ${header(name.toLowerCase())}`]),
  );
  return {
    status,
    retryAfter,
    remaining,
    by,
    text,
    shown: [`  status ${status}`, ...shown, ...(text ? [`  ${text.slice(0, 300)}`] : [])].join("\n"),
  };
}

/** A promise has neither a status nor headers: a test that forgot to await it should read so. */
function checkResponse(response: Partial<TestedResponse> | null | undefined): void {
  if (typeof response?.headers === "object" && response.headers !== null) return;
  const isPromise = typeof (response as { then?: unknown } | null | undefined)?.then === "function";
  const given = isPromise ? "a promise. Await it first: expectLimited(await request)" : `${JSON.stringify(response)}, which has no headers`;
  throw new Error(`A response was expected, but what was given is ${given}.`);
}

/** Reads a header of the response by its name in lower case. */
function headersOf({ headers }: TestedResponse): (lowerCaseName: string) => string | undefined {
  return (name) => {
    const value = typeof headers.get === "function" ? headers.get(name) : (headers as Record<string, unknown>)[name];
    return value === undefined || value === null ? undefined : String(value);
  };
}

function numberIn(text: string | undefined, pattern: RegExp): number | undefined {
  const [, digits] = pattern.exec(text ?? "") ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** The limits that a problem+json body names, parsed or as text. */
function violated(body: unknown): readonly string[] | undefined {
  if (typeof body === "string") {
    try {
      return violated(JSON.parse(body));
    } catch {
      return undefined;
    }
  }
  const policies = (body as { readonly "violated-policies"?: unknown } | null | undefined)?.["violated-policies"];
  return Array.isArray(policies) ? policies : undefined;
}
