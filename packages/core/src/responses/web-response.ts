import { outgoingOf, upgradedSocketOf, type WebRequest, type WebSignal } from "../requests/web-runtime.js";
import { FloodgateError, shown, withFaults } from "../support/errors.js";
import { getOrMake } from "../support/maps.js";
import type { Promised } from "../support/promises.js";
import type { Afterwards } from "./afterwards.js";
import type { Header } from "./headers.js";
import type { HeldRequests } from "./held-requests.js";
import { clientClosedRequest, type NodeSocket, whenEnded } from "./response-end.js";

/** The used part of a `Response` of the Fetch API. */
export interface WebResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null; set(name: string, value: string): void };
  readonly body: { readonly locked: boolean; pipeTo(writable: unknown): Promise<unknown> } | null;
  readonly cookies?: unknown;
}

declare const Response: new <R>(body: unknown, like: R) => NonNullable<R>;
declare const TransformStream: new (
  transformer: object,
  writable: undefined,
  readable: { highWaterMark: number },
) => { readable: unknown; writable: unknown };

/** A copy with its own headers. In Azure Functions, a response has `cookies` beside them. */
function copyOf<R extends WebResponse>(response: R, body: unknown): R {
  return Object.assign(new Response(body, response), { cookies: response.cookies });
}

const departures = new WeakMap<object, (() => void)[]>();

/** Adds one listener per signal or socket, because Node warns of more than ten. */
function whenGone(client: Partial<WebSignal & NodeSocket> | undefined, gone: () => void): void {
  if (client?.aborted || client?.destroyed) gone();
  else if (client) {
    getOrMake(departures, client, () => {
      const all: (() => void)[] = [];
      const left = (): void => {
        for (const callback of all) callback();
      };
      client.addEventListener?.("abort", left);
      client.once?.("close", left);
      return all;
    }).push(gone);
  }
}

/**
 * Holds a request until its turn. Answers false if its client disconnects before.
 * @param passed what the runtime passes beside the request.
 */
export function turnOf(request: WebRequest, passed: unknown, delayMs: number, waiting: HeldRequests): Promise<boolean> {
  const outgoing = outgoingOf(request, passed);
  return new Promise((resolve) => {
    const cancel = waiting.hold(delayMs, () => resolve(true));
    const left = (): void => {
      cancel();
      resolve(false);
    };
    if (outgoing) whenEnded(outgoing, left);
    else whenGone(upgradedSocketOf(request, passed) ?? request.signal, left);
  });
}

/**
 * Runs `onLimited`. Answers its response, or none for the usual one.
 * @param example what to write, for an error.
 * @throws FloodgateError `FLOODGATE_INVALID_ANSWER` if it answers something else.
 */
export async function answeredBy<R extends WebResponse>(
  onLimited: () => Promised<R | null | undefined>,
  example: string,
): Promise<R | null | undefined> {
  return responseOf(await withFaults(onLimited), "onLimited", example);
}

/**
 * Answers the response that a function of the app has answered, or none.
 * @throws FloodgateError `FLOODGATE_INVALID_ANSWER` if it is something else.
 */
export function responseOf<R extends WebResponse | null | undefined>(given: R, name: string, example: string): R {
  if (given === undefined || given === null || given.headers?.get !== undefined) return given;
  throw new FloodgateError(
    "FLOODGATE_INVALID_ANSWER",
    `rateLimit: \`${name}\` must answer a Response, but answered ${shown(given)}. Write ${name}: ${example}.`,
  );
}

/**
 * The end of the response to one request. Calls `ended` once: with the response's status when its body was read to its end, or with 499 when
 * the client disconnects before, also while the request is handled. On Node that is when its response closes, and for a WebSocket when its
 * socket closes.
 */
export class WebResponseEnd {
  readonly #isHead: boolean;
  readonly #keepAlive: (work: Promise<unknown>) => void;
  /** Settles when the response is over and `ended` is done. */
  readonly #over: Promise<unknown> | undefined;
  /** Undefined if nothing is left to do, or if Node reports the end. */
  #ended: ((status: number) => void) | undefined;
  /** On Node, the socket of a WebSocket. It is open for longer than the body of the response. */
  readonly #upgraded: NodeSocket | undefined;
  /** The status if the client disconnects. */
  #lastStatus = clientClosedRequest;

  /**
   * @param passed what the runtime passes beside the request.
   * @param keepAlive makes the runtime wait for work, if it kills unawaited work.
   */
  constructor(request: WebRequest, passed: unknown, ended: Afterwards, keepAlive: (work: Promise<unknown>) => void) {
    this.#isHead = request.method === "HEAD";
    this.#keepAlive = keepAlive;
    const outgoing = outgoingOf(request, passed);
    if (outgoing !== undefined) {
      whenEnded(outgoing, ended);
      return;
    }
    this.#over = new Promise((resolve) => {
      this.#ended = (status) => resolve(ended(status));
    });
    this.#upgraded = upgradedSocketOf(request, passed);
    // Some servers stop reading silently. `pipeTo` has an option for this, but it waits until the chunks that it holds are read.
    whenGone(this.#upgraded ?? request.signal, () => this.#end(this.#lastStatus));
  }

  /**
   * Watches the body of the response. Returns the response to send in its place.
   * @param response undefined if the app failed, and its framework answers with an error.
   * @param without the status if there is no response.
   */
  watch<R extends WebResponse | undefined>(response: R, without = 500): R {
    if (this.#ended === undefined) return response;
    this.#keepAlive(this.#over as Promise<unknown>);
    const { body, status } = response ?? { body: null, status: without };
    if (this.#upgraded !== undefined) {
      this.#lastStatus = status;
      return response;
    }
    // Nobody reads the body of a HEAD response. If somebody reads the body already, we cannot see its end.
    if (!body || body.locked || this.#isHead) {
      this.#end(status);
      return response;
    }
    // Reads one chunk ahead, so that a body of one chunk ends even if an outer middleware replaces the response and never reads it.
    const { readable, writable } = new TransformStream({}, undefined, { highWaterMark: 1 });
    body.pipeTo(writable).then(
      () => this.#end(status),
      () => this.#end(clientClosedRequest),
    );
    return copyOf(response as NonNullable<R>, readable);
  }

  #end(status: number): void {
    const ended = this.#ended;
    if (ended === undefined) return;
    this.#ended = undefined;
    ended(status);
    // The runtime may cancel the handler, so `watch` may never be called.
    if (status === clientClosedRequest) this.#keepAlive(this.#over as Promise<unknown>);
  }
}

/**
 * The headers of a limit that a response lacks, as names and values. A list has the items of this limit, and then those that the response has
 * already, because outer limits come first. Other headers of the response stay.
 */
function missingHeaders(response: WebResponse, headers: readonly Header[]): [name: string, value: string][] {
  const missing: [string, string][] = [];
  // A protocol switch and a network error cannot be copied.
  if (response.status < 200) return missing;
  // Backwards, because the last list differs most: a response that has a limit's items there has all of the limit's headers.
  for (let i = headers.length - 1; i >= 0; i--) {
    const { name, value, list } = headers[i] as Header;
    const said = response.headers.get(name);
    if (said === null) missing.push([name, value]);
    else if (list) {
      if (`, ${said},`.includes(`, ${value},`)) break;
      missing.push([name, `${value}, ${said}`]);
    }
  }
  return missing;
}

/**
 * Adds the headers of a limit that a response lacks. Returns a copy if the response cannot change.
 * @param mayShare whether several requests may share the response, which then never changes. Default: if it has no body.
 */
export function withHeaders<R extends WebResponse>(response: R, headers: readonly Header[], mayShare: boolean = response.body === null): R {
  const missing = missingHeaders(response, headers);
  if (missing.length === 0) return response;
  const add = (to: R): R => {
    for (const [name, value] of missing) to.headers.set(name, value);
    return to;
  };
  // The body of a response that was sent cannot be copied.
  if (!mayShare || response.body?.locked) {
    try {
      return add(response);
    } catch {
      // The headers of some responses, such as those from `fetch()`, cannot change.
    }
  }
  return add(copyOf(response, response.body));
}
