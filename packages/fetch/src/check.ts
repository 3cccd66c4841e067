import type { Decision } from "@floodgate/core";
import { edgeAddress, hasLeft, type Outcome, type RequestReader, socketAddress, webHeader } from "@floodgate/core/adapter";

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

export const fetchReader: RequestReader<FetchRequest> = {
  identity: ({ request }) => request,
  app: () => fetchReader,
  method: ({ request }) => request.method,
  path({ request }) {
    const { url, params } = request as Request & { readonly params?: object };
    // The routes of Bun match the target as sent. Its URL is resolved, so that of an unusual target only the parameters are known.
    if (params && Object.values(params).some((value) => /^\.\.?(#|$)|\\/.test(value))) return [{ path: "..", unknown: "before" }];
    const path = new URL(url).pathname;
    // What SvelteKit, Qwik City and React Router append to the path of a page when they fetch its data, or call its action.
    const page = path.replace(/(\/?__|\/q-)data\.json$|(\/_(root)?)?\.(data|rsc)$/, "");
    // Some servers pass a URL as the client wrote it. To Elysia, a `#` is part of the path.
    const sent = url.slice(url.indexOf("/", 8)).replace(/\?.*/, "");
    return page === sent ? page : [path, page, sent, sent.replace(/#.*/, "")];
  },
  header: ({ request }, name) => webHeader(request, name),
  remoteAddress: address,
  clientIp: address,
  hasLeft: ({ request, context }) => hasLeft(request, context),
  // Who passes an address knows the proxies.
  trustsProxy: ({ request, context }) => Boolean(context.ip ?? edgeAddress(request, context)),
  route: ({ context: { route } }) => (typeof route === "string" ? route : undefined),
};

/** The client's address on Vercel, whose proxy replaces this header: `clientIp: vercelIp`. Anywhere else, clients can forge it. */
export const vercelIp = ({ request }: FetchRequest): string | undefined => request.headers.get("x-real-ip") ?? undefined;

function address({ request, context }: FetchRequest): string | undefined {
  return context.ip ?? socketAddress(request, context) ?? edgeAddress(request, context);
}

/** A request that was decided. */
export interface Decided extends Pick<Checked, "response"> {
  readonly outcome: Outcome;
  /** @param without the status if there is no response. Default 500. */
  finish<R extends Response | undefined>(response: R, without?: number): R;
}

/** Headers as the Fetch API takes them. */
export const pairs = (headers: Outcome["headers"]): [name: string, value: string][] => headers.map(({ name, value }) => [name, value]);
