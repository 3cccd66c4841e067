import type { RequestListener } from "node:http";
import { rateLimit } from "@floodgate/hono";
import { getRequestListener } from "@hono/node-server";
import { Hono, type MiddlewareHandler } from "hono";
import type { Router } from "hono/router";
import { LinearRouter } from "hono/router/linear-router";
import { PatternRouter } from "hono/router/pattern-router";
import { RegExpRouter } from "hono/router/reg-exp-router";
import { SmartRouter } from "hono/router/smart-router";
import { TrieRouter } from "hono/router/trie-router";
import type { Framework, Parts } from "./framework.js";
import { handlerName, type Level, rewritten } from "./plan.js";

const routers: Readonly<Record<string, () => Router<never>>> = {
  RegExpRouter: () => new RegExpRouter(),
  TrieRouter: () => new TrieRouter(),
  LinearRouter: () => new LinearRouter(),
  PatternRouter: () => new PatternRouter(),
  SmartRouter: () => new SmartRouter({ routers: [new RegExpRouter(), new TrieRouter()] }),
};

function fill(app: Hono, level: Level, depth: number, parts: Parts, limit: MiddlewareHandler, whole: Hono): void {
  for (const mount of level.passed) app.use(`${mount}/*`, (_c, next) => next());
  for (const rewrite of level.rewrites) {
    app.use(async (c, next) => {
      const url = new URL(c.req.url);
      const pathname = rewritten(url.pathname, rewrite);
      if (pathname === url.pathname) return await next();
      url.pathname = pathname;
      return whole.fetch(new Request(url, c.req.raw), c.env);
    });
  }
  if (level.limited) app.use(limit);
  level.routes.forEach(({ pattern, method }, i) => {
    const serve: MiddlewareHandler = async (_c, next) => {
      parts.reach(handlerName(depth, i));
      await next();
    };
    if (method === "ALL") app.all(pattern, serve);
    else app.on(method, [pattern], serve);
  });
  for (const one of level.below) {
    const inner = one.app ? new Hono() : app.basePath(one.mount);
    fill(inner, one, depth + 1, parts, limit, whole);
    if (one.app) app.route(one.mount, inner);
  }
}

export const hono: readonly Framework[] = Object.entries(routers).map(([name, router]) => ({
  name: `Hono with its ${name}`,
  abilities: { mounts: ["/api", "/users/:id", "/:x", "/v1", "/items"], files: false, rewrites: true },
  http2: true,
  build(plan, parts) {
    const app = new Hono({ router: router() as never });
    const limit = rateLimit(parts.limit as never) as MiddlewareHandler;
    try {
      fill(app, plan, 0, parts, limit, app);
      app.all("*", (c) => c.text("ok"));
      app.onError((_error, c) => c.text("failed", 500));
      app.router.match("GET", "/");
    } catch {
      return undefined;
    }
    return getRequestListener(app.fetch) as unknown as RequestListener;
  },
}));
