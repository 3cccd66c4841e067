import type { Decision } from "@floodgate/core";
import {
  clientClosedRequest,
  edgeAddress,
  type Header,
  missingHeaders,
  type Outcome,
  outgoingOf,
  type PossiblePath,
  type Promised,
  type RequestReader,
  sentPath,
  socketAddress,
  WebResponseEnd,
  whenEnded,
} from "@floodgate/core/adapter";

/**
 * What is known beside a request: the second argument of `check`, or of a handler. Bun's server, Deno's information, the environment of
 * @hono/node-server and Netlify's context fit. Other properties are the app's, for its functions.
 */
export interface FetchContext {
  /** The client's address, as the framework knows it. Default: the address that the runtime reports, if it reports one. Never read from headers. */
  ip?: string | undefined;
  /** The pattern of the matched route, for the key `"route"`: `/users/[id]`. */
  route?: string | undefined;
  /** Keeps the runtime alive until refunds and settlements are done. Workers, Netlify and Next.js pass it. */
  waitUntil?: ((work: Promise<unknown>) => void) | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: only the app knows what it or its runtime passes
  [name: string]: any;
}

/** A request as functions of the app get it: `key: ({ request, context }) => context.user?.id`. */
export interface FetchRequest<Context = FetchContext> {
  readonly request: Request;
  readonly context: Context;
}

/** What `check` answers. */
export interface Checked {
  /** The answer to a rejected request, complete. Undefined if the request may pass. */
  readonly response: Response | undefined;
  /** The rate limit headers. */
  readonly headers: Headers;
  /** The most restrictive decision; undefined if no limit applied. */
  readonly decision: Decision | undefined;
  /**
   * Adds the headers to the app's response, and refunds or settles once it was sent (`refundWhen`, `settle`). Send what it returns. Give
   * undefined if the app failed and its framework answers with an error.
   */
  finish<R extends Response | undefined>(response: R): R;
}

/** Makes the runtime wait for work, if it kills unawaited work. */
export type KeepAlive = (work: Promise<unknown>) => void;

export const fetchReader: RequestReader<FetchRequest> = {
  identity: ({ request }) => request,
  app: () => fetchReader,
  method: ({ request }) => request.method,
  path({ request: { url } }) {
    // Some servers pass a URL as the client wrote it.
    const [path, sent] = [new URL(url).pathname, sentPath(url)];
    return path === sent ? path : ([{ path }, { path: sent }] satisfies PossiblePath[]);
  },
  header: ({ request }, name) => request.headers.get(name) ?? undefined,
  remoteAddress: address,
  clientIp: address,
  // Who passes an address knows the proxies.
  trustsProxy: ({ request, context }) => context.ip !== undefined || edgeAddress(request, context) !== undefined,
  route: ({ context: { route } }) => (typeof route === "string" ? route : undefined),
};

/** The client's address on Vercel, whose proxy replaces this header: `clientIp: vercelIp`. Anywhere else, clients can forge it. */
export const vercelIp = ({ request }: FetchRequest): string | undefined => request.headers.get("x-real-ip") ?? undefined;

function address({ request, context }: FetchRequest): string | undefined {
  return context.ip ?? socketAddress(request, context) ?? edgeAddress(request, context);
}

/** A check of a request that was decided. */
export class Check implements Checked {
  readonly response: Response | undefined;
  readonly decision: Decision | undefined;
  readonly #headers: readonly Header[];
  readonly #keepAlive: KeepAlive;
  /** Undefined if nothing is to do then, or if Node reports the end of the response. */
  readonly #end: WebResponseEnd | undefined;
  /** Settles when the response is over and what is to do then is done. */
  readonly #over: Promise<unknown> = Promise.resolve();

  /** @param response the answer to a rejected request. */
  constructor({ request, context }: FetchRequest, outcome: Outcome, response: Response | undefined, keepAlive: KeepAlive) {
    const { headers, decision, afterResponse } = outcome;
    this.response = response && withHeaders(response, headers);
    this.decision = decision;
    this.#headers = headers;
    this.#keepAlive = keepAlive;
    if (afterResponse === undefined) return;
    const outgoing = outgoingOf(request, context);
    if (outgoing !== undefined) {
      whenEnded(outgoing, afterResponse);
      return;
    }
    let over: (work: Promised<unknown>) => void;
    this.#over = new Promise((resolve) => {
      over = resolve;
    });
    this.#end = new WebResponseEnd(request, (status) => {
      over(afterResponse(status));
      // The runtime may cancel the handler, so `finish` may never be called.
      if (status === clientClosedRequest) keepAlive(this.#over);
    });
  }

  get headers(): Headers {
    const headers = new Headers();
    for (const { name, value } of this.#headers) headers.append(name, value);
    return headers;
  }

  finish<R extends Response | undefined>(response: R): R {
    const answer = response && withHeaders(response, this.#headers);
    if (this.#end === undefined) return answer as R;
    this.#keepAlive(this.#over);
    const watched = this.#end.watch(answer ?? new Response(null, { status: 500 }));
    return (answer && watched) as R;
  }
}

function withHeaders(response: Response, headers: readonly Header[]): Response {
  const missing = missingHeaders(response, headers);
  if (missing.length === 0) return response;
  // Several requests may share a response without a body.
  if (response.body !== null) {
    try {
      for (const [name, value] of missing) response.headers.set(name, value);
      return response;
    } catch {
      // The headers of some responses, such as those from `fetch()`, cannot change.
    }
  }
  const copy = new Response(response.body, response);
  for (const [name, value] of missing) copy.headers.set(name, value);
  return copy;
}
