import type { RequestListener } from "node:http";
import { rateLimit } from "@floodgate/koa";
import Router from "@koa/router";
import Koa, { type Middleware } from "koa";
import mount from "koa-mount";
import type { Framework, Parts } from "./framework.js";
import { handlerName, type Level, type Rewrite, rewritten } from "./plan.js";

const pass: Middleware = (_ctx, next) => next();

function rewriting(rewrite: Rewrite): Middleware {
  return (ctx, next) => {
    if ("strip" in rewrite) ctx.path = rewritten(ctx.path ?? "/", rewrite);
    else ctx.url = rewritten(ctx.url, rewrite);
    return next();
  };
}

function addRoutes(router: Router, level: Level, depth: number, { reach }: Parts, before: readonly Middleware[] = []): void {
  level.routes.forEach(({ pattern, method }, i) => {
    const path = pattern.replace("*", "*rest");
    const serve = (_ctx: unknown, next: () => Promise<unknown>): Promise<unknown> => {
      reach(handlerName(depth, i));
      return next();
    };
    const handlers = [...(before as never[]), serve];
    if (method === "ALL") router.all(path, ...handlers);
    else router[method === "GET" ? "get" : "post"](path, ...handlers);
  });
}

function listenerOf(middlewares: readonly Middleware[]): RequestListener {
  const app = new Koa();
  app.silent = true;
  for (const middleware of middlewares) app.use(middleware);
  return app.callback() as RequestListener;
}

/** Mounts parts with koa-mount; each part has a router for its routes. */
export const koa: Framework = {
  name: "Koa with koa-mount",
  abilities: { mounts: ["/api", "/v1", "/users/42", "/items", "/api/", "/o'brien", "/en"], files: false, rewrites: true },
  http2: true,
  build(plan, parts) {
    const limit = rateLimit(parts.limit as never) as unknown as Middleware;
    const middlewaresOf = (level: Level, depth: number): Middleware[] => {
      const router = new Router();
      addRoutes(router, level, depth, parts);
      return [
        ...level.passed.map((path) => mount(path, pass)),
        ...level.rewrites.map(rewriting),
        ...(level.limited ? [limit] : []),
        router.routes() as unknown as Middleware,
        ...level.below.map((one) => {
          const within = middlewaresOf(one, depth + 1);
          if (!one.app) return mount(one.mount, within as never);
          const app = new Koa();
          for (const middleware of within) app.use(middleware);
          return mount(one.mount, app);
        }),
      ];
    };
    return listenerOf(middlewaresOf(plan, 0));
  },
};

/** Nested routers. Each route has the limit, because a router runs its middlewares only if the path has the exact case of its prefix. */
export const koaRouter: Framework = {
  name: "Koa with @koa/router",
  abilities: { mounts: ["/api", "/users/:id", "/:x", "/v1", "/items"], files: false, rewrites: false },
  http2: true,
  build(plan, parts) {
    const limit = rateLimit(parts.limit as never) as unknown as Middleware;
    const routerOf = (level: Level, depth: number, within: boolean): Router => {
      const router = new Router();
      const limited = within || (level.limited && depth > 0);
      addRoutes(router, level, depth, parts, limited ? [limit] : []);
      for (const one of level.below) router.use(one.mount, routerOf(one, depth + 1, limited).routes());
      return router;
    };
    return listenerOf([...(plan.limited ? [limit] : []), routerOf(plan, 0, false).routes() as unknown as Middleware]);
  },
};
