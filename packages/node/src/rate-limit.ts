import type { Decision } from "@floodgate/core";
import {
  mountedPaths,
  type NodeAnswer,
  nodeMiddleware,
  nodeReader,
  type PossiblePath,
  parsedPath,
  RateLimit,
  type RateLimitControls,
  type RateLimitOptions,
  type RequestPath,
  type RequestReader,
  routePattern,
  sentPath,
} from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";

/**
 * A request of `node:http` or `node:http2`, as functions of the app get it, unless they name their own type: `key: (req: IncomingMessage) =>
 * ...`. Typed by structure, so that it fits each version of Node's types. Properties that servers and the app add are untyped.
 */
export interface NodeRequest {
  method?: string | undefined;
  url?: string | undefined;
  /** The URL that the client sent, in servers that remove the paths of mounts from `url`. */
  originalUrl?: string | undefined;
  /** What `router` has removed from it. */
  baseUrl?: string | undefined;
  headers: { [name: string]: string | string[] | undefined };
  socket: { remoteAddress?: string | undefined };
  // biome-ignore lint/suspicious/noExplicitAny: only the app knows what routers and body parsers put there
  [name: string]: any;
}

export interface NodeRateLimitOptions<Req extends NodeRequest, Res extends NodeAnswer, Own extends string = never>
  extends RateLimitOptions<Req, Own> {
  /**
   * Answers a rejected request in place of the problem+json body. The headers and the status (429) are set already. A function without the
   * parameter `response` only observes, and the usual body is sent. A function with it must answer within five seconds after it returns
   * (or its promise settles); else the usual body is sent.
   */
  onLimited?: (request: Req, response: Res, decision: Decision | undefined) => unknown;
}

/** A middleware in the style of Connect, with its controls. In a plain server, `next` is a function of yours that serves the request. */
export interface RateLimitMiddleware extends RateLimitControls {
  // biome-ignore lint/suspicious/noExplicitAny: servers type errors differently
  (request: NodeRequest, response: NodeAnswer, next: (error?: any) => void): void;
}

const reader: RequestReader<NodeRequest> = {
  ...nodeReader,
  app: ({ socket }) => (socket as { readonly server?: object }).server,
  path: fullPath,
  clientIp: nodeReader.remoteAddress,
  trustsProxy: () => false,
  // `router` has one.
  route: routePattern,
};

/** `router` tells the paths of mounts in `baseUrl`. Of other servers, nobody knows whether a mount or a rewrite of the app's changed `url`. */
function fullPath({ url = "/", originalUrl = url, baseUrl }: NodeRequest): RequestPath {
  const path = sentPath(url);
  const isLost = url !== originalUrl && baseUrl === undefined;
  const full = isLost ? mountedPaths(originalUrl, path, undefined) : parsedPath(baseUrl ?? "", path, url, originalUrl);
  if (!originalUrl.includes("#") && !/;|.[\\/]$/.test(path)) return full;
  // find-my-way serves `/users/` by the route `/users/:id`, with an empty id. With `useSemicolonDelimiter`, its path ends at a semicolon.
  const sent = `${sentPath(originalUrl)}/`;
  // To polka, restana and moleculer-web, a `#` is part of the path.
  const possible: PossiblePath[] = [full, sent, sent.replace(/^\/+|;.*/g, "/"), originalUrl].flat();
  if (isLost) for (const rest of [path.replace(/;.*/, ""), url]) possible.push({ path: rest, unknown: "before" });
  return possible;
}

/**
 * Makes a middleware for `node:http`, `node:http2` and servers in the style of Connect. It limits requests: by default per client IP, in memory.
 *
 *     const limit = rateLimit({ limit: 100, window: "1m" });
 *     app.use(limit);                                                         // connect, polka, restana
 *     createServer((req, res) => limit(req, res, (error) => serve(req, res, error)));
 *
 * @throws FloodgateError if an option is invalid: when called, not at a request.
 */
export function rateLimit<
  Req extends NodeRequest = NodeRequest,
  // biome-ignore lint/suspicious/noExplicitAny: the response type of the app's server
  Res extends NodeAnswer = any,
  // TypeScript infers no names if a call gives the request's type, so any name is accepted there.
  const Own extends string = [NodeRequest] extends [Req] ? never : string,
>(options: NodeRateLimitOptions<Req, Res, Own>): RateLimitMiddleware {
  const limit = new RateLimit<Req>("rateLimit", options, ["onLimited"], reader, memoryStore);
  // A context of Koa and a request of Fastify have these too, and hold Node's request.
  const isRequest = ({ headers, socket, req, raw }: Req): boolean => headers !== undefined && socket !== undefined && !(req ?? raw)?.socket;
  return nodeMiddleware<Req, Res>(limit, { takes: "a request of Node", isRequest, onLimited: options.onLimited }) as RateLimitMiddleware;
}
