import { outgoingOf, type WebRequest, type WebSignal } from "../requests/web-runtime.js";
import { FloodgateError, shown } from "../support/errors.js";
import type { Header } from "./headers.js";
import type { HeldRequests } from "./held-requests.js";
import { clientClosedRequest, whenEnded } from "./response-end.js";

/** The used part of a `Response` of the Fetch API. */
export interface WebResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: { readonly locked: boolean; pipeTo(writable: unknown): Promise<unknown> } | null;
}

declare const Response: new <R>(body: unknown, like: R) => R;
declare const TransformStream: new (
  transformer: object,
  writable: undefined,
  readable: { highWaterMark: number },
) => { readable: unknown; writable: unknown };

const aborts = new WeakMap<WebSignal, (() => void)[]>();

/** Adds one listener per signal, because Node warns of more than ten. */
function whenAborted(signal: WebSignal, gone: () => void): void {
  const waiting = aborts.get(signal);
  if (signal.aborted) gone();
  else if (waiting !== undefined) waiting.push(gone);
  else {
    const all = [gone];
    aborts.set(signal, all);
    const aborted = (): void => {
      for (const callback of all) callback();
    };
    signal.addEventListener("abort", aborted, { once: true });
  }
}

/**
 * Holds a request until its turn. Answers false if its client disconnects before.
 * @param passed what the runtime passes beside the request.
 */
export function turnOf(request: WebRequest, passed: unknown, delayMs: number, waiting: HeldRequests): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = waiting.hold(delayMs, () => resolve(true));
    const gone = (): void => {
      cancel();
      resolve(false);
    };
    const outgoing = outgoingOf(request, passed);
    if (outgoing === undefined) whenAborted(request.signal, gone);
    else whenEnded(outgoing, gone);
  });
}

/**
 * What `onLimited` has answered, if that is a response; undefined for the usual one.
 * @param example what to write, for an error.
 * @throws FloodgateError `FLOODGATE_INVALID_ANSWER` if it is something else.
 */
export function answeredBy<R extends WebResponse>(given: R | null | undefined, example: string): R | undefined {
  if (given === undefined || given === null) return undefined;
  if (typeof given.headers === "object") return given;
  throw new FloodgateError(
    "FLOODGATE_INVALID_ANSWER",
    `rateLimit: \`onLimited\` must answer a response, or undefined for the usual one, but answered ${shown(given)}. Write onLimited: ${example}.`,
  );
}

/**
 * Calls `ended` once the body of a response was read to its end, with the response's status, or with 499 if the client disconnected before.
 * Returns the response to send in its place.
 */
export function whenRead<R extends WebResponse>({ signal, method }: WebRequest, response: R, ended: (status: number) => void): R {
  const { body, status } = response;
  // Nobody reads the body of a HEAD response. If somebody reads the body already, we cannot see its end.
  if (signal.aborted || body === null || body.locked || method === "HEAD") {
    ended(signal.aborted ? clientClosedRequest : status);
    return response;
  }
  // Reads one chunk ahead, so that a body of one chunk ends even if an outer middleware replaces the response and never reads it.
  const { readable, writable } = new TransformStream({}, undefined, { highWaterMark: 1 });
  let hasEnded = false;
  const endOnce = (status: number): void => {
    if (hasEnded) return;
    hasEnded = true;
    ended(status);
  };
  const left = (): void => endOnce(clientClosedRequest);
  // Some servers stop reading silently. `pipeTo` has an option for this, but it waits until the chunks that it holds are read.
  whenAborted(signal, left);
  body.pipeTo(writable).then(() => endOnce(status), left);
  return new Response(readable, response);
}

/**
 * The headers of a limit that a response lacks, as names and values. A list has the items of this limit, and then those that the response has
 * already, because outer limits come first. Other headers of the response stay.
 */
export function missingHeaders(response: WebResponse, headers: readonly Header[]): [name: string, value: string][] {
  const missing: [string, string][] = [];
  // A protocol switch and a network error cannot be copied.
  if (response.status < 200) return missing;
  // Backwards, because the last list differs most: a response that has a limit's items there has all of the limit's headers.
  for (let i = headers.length - 1; i >= 0; i--) {
    const { name, value, list } = headers[i] as Header;
    const said = response.headers.get(name);
    if (said === null) missing.push([name, value]);
    else if (list) {
      if (said === value || `, ${said},`.includes(`, ${value},`)) break;
      missing.push([name, `${value}, ${said}`]);
    }
  }
  return missing;
}
