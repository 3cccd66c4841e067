import type { RequestListener } from "node:http";
import { rateLimit } from "@floodgate/express";
import express, { type RequestHandler, type Router } from "express";
import express4Module from "express4";
import type { Framework, Parts } from "./framework.js";
import { handlerName, type Level, rewritten } from "./plan.js";

const mounts = ["/api", "/users/:id", "/:x", "/v1", "/a/:b", "/items", "/api/login", "/Api"];

type Module = typeof express;

function framework(name: string, module: Module, wildcard: string): Framework {
  const pathOf = (pattern: string): string => pattern.replace("*", wildcard);

  function fill(router: Router, level: Level, depth: number, parts: Parts, limit: RequestHandler): void {
    for (const mount of level.passed) router.use(pathOf(mount), (_request, _response, next) => next());
    for (const rewrite of level.rewrites) {
      router.use((request, _response, next) => {
        request.url = rewritten(request.url, rewrite);
        next();
      });
    }
    if (level.limited) router.use(limit);
    if (level.files !== undefined) {
      const setHeaders = (): void => parts.reach(handlerName(depth, "files"));
      router.use(level.files === "" ? "/" : level.files, module.static(parts.root, { setHeaders }));
    }
    level.routes.forEach(({ pattern, method }, i) => {
      const serve: RequestHandler = (_request, _response, next) => {
        parts.reach(handlerName(depth, i));
        next();
      };
      if (method === "ALL") router.all(pathOf(pattern), serve);
      else router[method === "GET" ? "get" : "post"](pathOf(pattern), serve);
    });
    for (const one of level.below) {
      const inner = one.app ? (module() as unknown as Router) : module.Router();
      fill(inner, one, depth + 1, parts, limit);
      router.use(pathOf(one.mount), inner);
    }
  }

  return {
    name,
    abilities: { mounts, files: true, rewrites: true },
    http2: false,
    build(plan, parts) {
      const app = module();
      const limit = rateLimit(parts.limit as never) as unknown as RequestHandler;
      fill(app as unknown as Router, plan, 0, parts, limit);
      app.use(((_request, response) => void response.end()) as RequestHandler);
      app.use(((_error: unknown, _request: unknown, response: { end(): void }, _next: unknown) => response.end()) as never);
      return app as unknown as RequestListener;
    },
  };
}

export const express4: Framework = framework("Express 4", express4Module as unknown as Module, "*");
export const express5: Framework = framework("Express 5", express, "*rest");
