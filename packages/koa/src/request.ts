import {
  forgeableClientIp,
  maxHops,
  mountedPaths,
  nodeReaderOf,
  type PossiblePath,
  parsedPath,
  type RequestPath,
  type RequestReader,
  reparsedPaths,
} from "@floodgate/core/adapter";
import type { KoaContext } from "./context.js";
import { hasSlashMount, mountedAt } from "./mounts.js";

export const koaReader: RequestReader<KoaContext> = {
  ...nodeReaderOf((ctx: KoaContext) => ctx.req),
  identity: (ctx) => ctx.req,
  app: (ctx) => ctx.app,
  path: fullPath,
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
  route: routePattern,
};

/** The path that the routers follow, with the prefixes that koa-mount has removed. */
function fullPath(ctx: KoaContext): RequestPath {
  const { path, url, originalUrl, mountPath, newRouterPath, routerPath, _matchedRoute } = ctx;
  // Some targets, such as `/\\a@#`, have no path, although Koa's types say so. No route serves them.
  const rest: string = path ?? "/";
  const base = mountedAt(ctx);
  const full = base === undefined ? mountedPaths(originalUrl, rest, mountPath + rest) : parsedPath(base, rest, url, originalUrl);
  // The app may give @koa/router another path. The router leaves its own patterns in `routerPath`; only its old versions read it.
  const given = [newRouterPath, _matchedRoute === undefined ? routerPath : undefined].filter((path) => typeof path === "string");
  const others = [...given.map((path): PossiblePath => ({ path })), ...reparsedPaths(rest, hasSlashMount(ctx))];
  if (others.length === 0) return full;
  const possible: readonly PossiblePath[] = typeof full === "string" ? [{ path: full }] : full;
  return [...possible, ...others.map((other) => ({ ...other, path: (base ?? "") + other.path }))];
}

/** The pattern of the route that the middleware stands on: what @koa/router tells in its own `use` is no route's. */
function routePattern({ _matchedRoute: pattern, matched }: KoaContext): string | undefined {
  if (pattern === undefined || !Array.isArray(matched)) return undefined;
  return matched.some((layer) => layer.path === pattern && layer.methods.length > 0) ? `${pattern}` : undefined;
}
