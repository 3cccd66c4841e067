import type { KoaContext } from "./context.js";

const watched = new WeakSet<KoaContext["app"]>();

/**
 * Keeps a limit's headers on error responses. Koa's error handling, also after `ctx.throw(404)`, removes all headers that
 * `res.getHeaderNames` lists. While it runs, that list omits the limit's headers. (`error.headers` would not work for an error object that
 * several requests throw.) Errors that an outer middleware catches lose no headers.
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
