import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { rateLimit } from "@floodgate/fastify";
import Fastify, { type FastifyInstance, type FastifyServerOptions, type HTTPMethods } from "fastify";
import type { Framework, Parts } from "./framework.js";
import { handlerName, type Level, rewritten } from "./plan.js";

function fill(app: FastifyInstance, level: Level, depth: number, parts: Parts): void {
  if (level.limited) app.register(rateLimit(parts.limit as never));
  level.routes.forEach(({ pattern, method }, i) => {
    const methods: HTTPMethods[] = method === "ALL" ? ["GET", "HEAD", "POST"] : [method];
    app.route({
      method: methods,
      url: pattern,
      handler: async () => {
        parts.reach(handlerName(depth, i));
        return "ok";
      },
    });
  });
  for (const one of level.below) {
    app.register(async (inner) => fill(inner, one, depth + 1, parts), { prefix: one.mount });
  }
}

function framework(name: string, options: FastifyServerOptions): Framework {
  return {
    name,
    // Only the whole app can rewrite paths.
    abilities: { mounts: ["/api", "/users/:id", "/:x", "/v1", "/items", "/Api"], files: false, rewrites: true },
    http2: true,
    build(plan, parts) {
      const app = Fastify({
        ...options,
        rewriteUrl: ({ url = "/" }) => plan.rewrites.reduce(rewritten, url),
      });
      try {
        fill(app, plan, 0, parts);
      } catch {
        return undefined;
      }
      const ready = app.ready();
      return ((request: IncomingMessage, response: ServerResponse) => {
        ready.then(
          () => app.routing(request, response),
          () => response.end(),
        );
      }) as RequestListener;
    },
  };
}

const loose = { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, useSemicolonDelimiter: true };

export const fastify: readonly Framework[] = [framework("Fastify", {}), framework("Fastify, loose", { routerOptions: loose })];
