import type { KoaContext } from "./context.js";

const watched = new WeakSet<KoaContext["app"]>();

/**
 * Koa's own error handling removes all headers that the response names, also for `ctx.throw(404)`, and only then sets those of the
 * error. While it runs, the response names none of a limit's, so that they stay. (`error.headers` would do as well, but for an error
 * that is thrown to several clients.) What a middleware further out catches has lost no headers.
 */
export function keepHeadersOnError(app: KoaContext["app"]): void {
  if (watched.has(app)) return;
  watched.add(app);
  app.on("error", (_error, ctx) => {
    const { res } = (ctx ?? {}) as Partial<KoaContext>;
    if (res === undefined) return;
    const { getHeaderNames } = res;
    const isKept = (name: string): boolean =>
      /^(x-)?ratelimit(-|$)|^retry-after$/.test(name) || (name === "cache-control" && res.getHeader(name) === "no-store");
    res.getHeaderNames = () => getHeaderNames.call(res).filter((name) => !isKept(name));
    queueMicrotask(() => {
      res.getHeaderNames = getHeaderNames;
    });
  });
}
