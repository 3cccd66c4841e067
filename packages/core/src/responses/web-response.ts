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
 * The end of the response to one request. Calls `ended` once: with the response's status when its body was read to its end, or with 499 when
 * the client disconnects before, also while the request is handled.
 */
export class WebResponseEnd {
  readonly #isHead: boolean;
  #ended: ((status: number) => void) | undefined;

  constructor({ signal, method }: WebRequest, ended: (status: number) => void) {
    this.#isHead = method === "HEAD";
    this.#ended = ended;
    // Some servers stop reading silently. `pipeTo` has an option for this, but it waits until the chunks that it holds are read.
    whenAborted(signal, () => this.#end(clientClosedRequest));
  }

  /** Watches the body of the response. Returns the response to send in its place. */
  watch<R extends WebResponse>(response: R): R {
    const { body, status } = response;
    if (this.#ended === undefined) return response;
    // Nobody reads the body of a HEAD response. If somebody reads the body already, we cannot see its end.
    if (body === null || body.locked || this.#isHead) {
      this.#end(status);
      return response;
    }
    // Reads one chunk ahead, so that a body of one chunk ends even if an outer middleware replaces the response and never reads it.
    const { readable, writable } = new TransformStream({}, undefined, { highWaterMark: 1 });
    body.pipeTo(writable).then(
      () => this.#end(status),
      () => this.#end(clientClosedRequest),
    );
    return new Response(readable, response);
  }

  #end(status: number): void {
    const ended = this.#ended;
    this.#ended = undefined;
    ended?.(status);
  }
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
