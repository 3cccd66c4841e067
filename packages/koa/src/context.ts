import { type Decision, FloodgateError, type NodeResponse, type RequestReader } from "@floodgate/core";

/** What is used of Node's own response, that of HTTP/1 or HTTP/2. */
export interface KoaResponse extends NodeResponse {
  readonly headersSent: boolean;
  getHeader(name: string): number | string | string[] | undefined;
  getHeaderNames(): string[];
  setHeader(name: string, value: string): unknown;
}

/**
 * What functions of the request are given unless the app says its own type: `key: (ctx: Koa.Context) => ...`. Written down by
 * structure, so that Koa 2 and 3 apps both fit and nobody needs types who has none. What the app has added is here too, untyped.
 */
export interface KoaContext {
  app: {
    proxy: boolean;
    maxIpsCount: number;
    on(event: "error", listener: (error: unknown, ctx: unknown) => void): unknown;
  };
  req: { headers: { [name: string]: string | string[] | undefined }; socket: { remoteAddress?: string | undefined } };
  res: KoaResponse;
  // biome-ignore lint/suspicious/noExplicitAny: the app's to know
  state: any;
  method: string;
  url: string;
  originalUrl: string;
  path: string;
  // biome-ignore lint/suspicious/noExplicitAny: what routers, body parsers and the app put there is the app's to know
  params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  query: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  request: { body?: any; [name: string]: any };
  ip: string;
  status: number;
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever Koa sends
  body: any;
  respond?: boolean | undefined;
  readonly headerSent: boolean;
  readonly writable: boolean;
  get(header: string): string;
  set(header: string, value: string): void;
  throw(status: number, ...details: (string | object)[]): never;
  // biome-ignore lint/suspicious/noExplicitAny: as in Koa's own types
  [name: string]: any;
}

/** What a limit adds to an app's `ctx.state`: an `object`, so that a state without it fits too. */
export type RateLimitState<Name extends string = "rateLimit"> = object & {
  /** The decision of the rate limit that this request met last; undefined where none applied. */
  [Property in Name]?: Decision;
};

export const koaReader: RequestReader<KoaContext> = {
  identity: (ctx) => ctx.req,
  method: (ctx) => ctx.method,
  path: fullPath,
  header(ctx, name) {
    const value = ctx.req.headers[name];
    if (Array.isArray(value)) return value.join(", ");
    // What headers inherit under a name (`constructor`) is none.
    return typeof value === "string" ? value : undefined;
  },
  remoteAddress: (ctx) => ctx.req.socket.remoteAddress,
  clientIp(ctx) {
    const { proxy, maxIpsCount } = ctx.app;
    if (proxy && !(maxIpsCount > 0)) {
      throw new FloodgateError(
        "FLOODGATE_FORGEABLE_CLIENT_IP",
        "Koa's `app.proxy` is true without `app.maxIpsCount`, so the client IP is the left-most forwarded address, which anyone can forge. Write new Koa({ proxy: true, maxIpsCount: 1 }) for one proxy in front, also where `proxyIpHeader` names a header with one address. Or give rateLimit a `clientIp`.",
      );
    }
    return ctx.ip;
  },
  trustsProxy: (ctx) => Boolean(ctx.app.proxy),
  route: routePattern,
};

/**
 * The path as the routers see it, with what koa-mount has taken off it: that tells the innermost of its prefixes alone, and goes on
 * telling it when it has put it back. Where the path that the client sent ends like that, it is the full one.
 */
function fullPath({ path: seen, mountPath, originalUrl }: KoaContext): string {
  // Of a target that is none (`/\\a@#`, say) Koa sees no path, whatever its types say, and serves no route.
  const path: string = seen ?? "/";
  if (typeof mountPath !== "string") return path;
  const known = path.startsWith(mountPath) ? path : mountPath + path;
  const sent = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)/i.exec(originalUrl)?.[1] ?? "";
  return sent.endsWith(known) || `${sent}/`.endsWith(known) ? sent : known;
}

/** The pattern of the route that the middleware stands on: what @koa/router tells in its own `use` is no route's. */
function routePattern({ _matchedRoute: pattern, matched }: KoaContext): string | undefined {
  if (pattern === undefined || !Array.isArray(matched)) return undefined;
  return matched.some((layer) => layer.path === pattern && layer.methods.length > 0) ? `${pattern}` : undefined;
}
