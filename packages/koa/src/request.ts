import type { Decision } from "@floodgate/core";
import type { HeaderTarget, NodeMessage, NodeResponse, RequestReader } from "@floodgate/core/adapter";
import { forgeableClientIp, getOrMake, maxHops, mountedPaths, nodeReaderOf, parsedPath, reparsedPaths } from "@floodgate/core/adapter";

// biome-ignore lint/suspicious/noExplicitAny: only the app knows what it, its routers and its body parsers put there
type Any = any;

type ErrorListener = (error: unknown, ctx?: Partial<KoaContext>) => void;

/**
 * The context that functions of the app get, unless they name their own type: `key: (ctx: Koa.Context) => ...`. Typed by structure, so that
 * it fits Koa 2 and 3, and apps without Koa's types. Properties that the app adds are untyped.
 */
export interface KoaContext extends Record<"method" | "url" | "originalUrl" | "path" | "ip" | "type", string> {
  app: { proxy: boolean; maxIpsCount: number; context?: object; on(event: "error", listener: ErrorListener): unknown };
  req: NodeMessage;
  /** The used part of Node's HTTP/1 or HTTP/2 response. */
  res: NodeResponse & HeaderTarget & { getHeaderNames(): string[] };
  request: { body?: Any; [name: string]: Any };
  state: Any;
  params?: Any;
  query: Any;
  body: Any;
  status: number;
  respond?: boolean | undefined;
  readonly headerSent: boolean;
  readonly writable: boolean;
  get(header: string): string;
  set(header: string, value: string): void;
  throw(status: number, ...details: (string | object)[]): never;
  [name: string]: Any;
}

/** What a limit adds to `ctx.state`. An `object`, so that a state without it fits too. */
export type RateLimitState<Name extends string = "rateLimit"> = object & {
  /** The decision of the last rate limit of this request; undefined if none applied. */
  [Property in Name]?: Decision;
};

export const koaReader: RequestReader<KoaContext> = {
  ...nodeReaderOf((ctx: KoaContext) => ctx.req),
  identity: (ctx) => ctx.req,
  app: (ctx) => ctx.app,
  // The path that the routers follow, with the prefixes that koa-mount has removed.
  path(ctx) {
    const { path, url, originalUrl, mountPath, newRouterPath, routerPath, _matchedRoute } = ctx;
    // Some targets, such as `/\\a@#`, have no path, although Koa's types say so. No route serves them.
    const rest: string = path ?? "/";
    const base = mountedAt(ctx);
    const full = base === undefined ? mountedPaths(originalUrl, rest, mountPath + rest) : parsedPath(base, rest, url, originalUrl);
    // The app may give @koa/router another path. The router leaves its own patterns in `routerPath`; only its old versions read it.
    const given = [newRouterPath, _matchedRoute === undefined ? routerPath : undefined].filter((path) => typeof path === "string");
    const reparsed = reparsedPaths(base ?? "", rest, followed.get(ctx.app.context as object) === true);
    return given.length + reparsed.length === 0 ? full : [full, given.map((path) => (base ?? "") + path), reparsed].flat();
  },
  clientIp(ctx) {
    const { proxy, maxIpsCount } = ctx.app;
    // Koa counts with slice(-maxIpsCount), which takes 0.5 as 0: all addresses.
    if (proxy && !(maxIpsCount >= 1 && maxIpsCount <= maxHops)) {
      const setting = maxIpsCount > 0 ? `with an \`app.maxIpsCount\` of ${maxIpsCount}` : "without `app.maxIpsCount`";
      throw forgeableClientIp(
        `Koa's \`app.proxy\` is true ${setting}`,
        "Write new Koa({ proxy: true, maxIpsCount: 1 }) for one proxy in front, also where `proxyIpHeader` names a header with one address.",
      );
    }
    return ctx.ip;
  },
  trustsProxy: (ctx) => Boolean(ctx.app.proxy),
  // The pattern of the route that the middleware stands on: what @koa/router tells in its own `use` is no route's.
  route({ _matchedRoute: pattern, matched }) {
    if (pattern === undefined || !Array.isArray(matched)) return undefined;
    return matched.some((layer) => layer.path === pattern && layer.methods.length > 0) ? `${pattern}` : undefined;
  },
};

/** The mounts of koa-mount that a request is in, the innermost first: the prefixes up to it, and the path before its own was removed. */
type Mounts = { readonly base: string; readonly outside: string }[];

/** The mounts of requests that have entered one, by the `ctx.request`: a middleware may wrap the context. */
const mounts = new WeakMap<object, Mounts>();

/** The apps, by the prototype of their contexts: whether a request entered a mount whose path ends in a slash. */
const followed = new WeakMap<object, boolean>();

/**
 * All prefixes that koa-mount has removed from a request's path so far. koa-mount reports only the innermost one, so we follow each app's
 * contexts from the first request on. Undefined if the request entered a mount before that.
 */
function mountedAt(ctx: KoaContext): string | undefined {
  const entered = mounts.get(ctx.request);
  // An app may set a mount path itself, and remove nothing from the path.
  if (entered !== undefined) return entered.find(({ outside }) => outside !== ctx.path)?.base ?? "";
  const { context } = ctx.app;
  if (context !== undefined && !followed.has(context)) {
    followed.set(context, false);
    const isOurs = !Object.hasOwn(context, "path") && !("mountPath" in context);
    if (isOurs) Object.defineProperties(context, Object.getOwnPropertyDescriptors(accessors));
  }
  return typeof ctx["mountPath"] === "string" ? undefined : "";
}

/** koa-mount sets `ctx.mountPath` and then `ctx.path` when a request enters a mount, and `ctx.path` alone when it leaves. */
const accessors: ThisType<KoaContext> = {
  get mountPath(): string | undefined {
    return this.request["mountPath"];
  },
  set mountPath(prefix: string) {
    if (prefix.endsWith("/")) followed.set(this.app.context as object, true);
    this.request["mountPath"] = prefix;
    const entered = getOrMake(mounts, this.request, (): Mounts => []);
    entered.unshift({ base: (entered[0]?.base ?? "") + prefix, outside: this.path });
  },
  get path(): string {
    return this.request["path"];
  },
  set path(path: string) {
    const entered = mounts.get(this.request);
    if (entered?.[0]?.outside === path) entered.shift();
    this.request["path"] = path;
  },
};
