import type { OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import {
  type Adapter,
  andThen,
  forRequests,
  type Handler,
  type LimitSetup,
  type Reply,
  type RequestView,
  type Step,
} from "@floodgate/conformance/adapter";
import { memoryStore } from "@floodgate/store-memory";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { type FastifyRateLimitOptions, type RateLimitPlugin, rateLimit } from "../src/index.js";

type Hook = NonNullable<FastifyRateLimitOptions["hook"]>;

const view = (request: FastifyRequest): RequestView => ({
  method: request.method,
  path: request.originalUrl,
  body: request.body,
  header: (name) => request.headers[name.toLowerCase()] as string | undefined,
  decision: (name) => (request as unknown as Record<string, ReturnType<RequestView["decision"]>>)[name],
});

export function send(reply: FastifyReply, { status, body, chunks, raw }: Reply): FastifyReply {
  if (raw === true) {
    reply.hijack();
    reply.raw
      .writeHead(status ?? reply.statusCode, { ...(reply.getHeaders() as OutgoingHttpHeaders), "content-type": "application/json" })
      .end(JSON.stringify(body));
    return reply;
  }
  if (status !== undefined) reply.code(status);
  if (chunks !== undefined) return reply.send(Readable.from(chunks));
  return reply.type("application/json").send(JSON.stringify(body));
}

/** Describes Fastify to the conformance suite. */
export function fastifyAdapter(name: string, hook: Hook): Adapter {
  function limitOf(setup: LimitSetup): RateLimitPlugin {
    const { onLimited } = setup;
    const options = { ...forRequests<FastifyRequest>(setup, view), hook } as FastifyRateLimitOptions<string>;
    if (typeof onLimited !== "function") return rateLimit<string>(onLimited === undefined ? options : { ...options, onLimited });
    return rateLimit<string>({
      ...options,
      onLimited: (request, reply, decision) => andThen(onLimited(view(request), decision), (answer) => answer && send(reply, answer)),
    });
  }

  function build(app: FastifyInstance, steps: readonly Step[], limits: readonly RateLimitPlugin[], fallback: Handler): void {
    for (const step of steps) {
      if ("limit" in step) {
        const limit = limits[step.limit] as RateLimitPlugin;
        const { path } = step;
        if (path === undefined) app.register(limit);
        else
          app.addHook(hook as "preHandler", (request, reply, done) =>
            isUnder(request.url, path) ? limit.hook(request, reply, done) : done(),
          );
      } else if ("router" in step) {
        app.register(async (inner) => build(inner, step.steps, limits, fallback), { prefix: step.router });
      } else if ("route" in step) {
        const { handler = fallback } = step;
        app.route({
          method: step.method ?? "get",
          url: step.route,
          [hook]: (step.limits ?? []).map((limit) => limits[limit]?.hook as RateLimitPlugin["hook"]),
          handler: async (request, reply) => send(reply, await handler(view(request), request.rateLimit)),
        });
      }
    }
  }

  return {
    name,
    proxies: ["one hop", "forgeable"],
    outer: true,
    seesSending: true,
    begins: true,
    presets: true,
    marksRequests: true,
    http2: true,
    routesAhead: true,
    // A store takes the memory of its most keys when it is made, which is slow for thousands of stores.
    store: (clock) => memoryStore({ clock, maxKeys: 10_000 }),
    async start({ limits: setups, anew, steps, proxy, host = "127.0.0.1", http2, handler, onError, outer, begins, presets = {} }) {
      const rewrites = steps.filter((step) => "rewrite" in step);
      const app = Fastify({
        ...(http2 === true ? { http2: true as never } : {}),
        trustProxy: proxy === "one hop" ? (_address: string, hop: number) => hop < 1 : proxy === "forgeable",
        rewriteUrl: ({ url = "/" }) =>
          rewrites.reduce((path, { rewrite, to }) => (path.startsWith(`${rewrite}/`) ? to + path.slice(rewrite.length) : path), url),
      });
      if (outer !== undefined) {
        app.addHook("onResponse", async (_request, reply) => outer((header) => reply.getHeader(header) as string | undefined));
      }
      // Without a parser Fastify answers with an error. This one reads nothing, as other frameworks do.
      app.addContentTypeParser("application/octet-stream", (_request, _payload, done) => done(null));
      app.setErrorHandler((error, _request, reply) => {
        onError(error);
        reply.code(500).send();
      });
      app.addHook("onRequest", (_request, reply, done) => {
        // Hooks set the first, middlewares the second.
        reply.headers(presets);
        for (const name in presets) reply.raw.setHeader(name, presets[name] as string);
        done();
      });
      if (begins === true) {
        app.addHook("onRequest", (_request, reply, done) => {
          reply.raw.flushHeaders();
          done();
        });
      }
      const limits = setups.map((setup) => {
        const limit = limitOf(setup);
        if (anew !== true) return limit;
        return Object.assign(
          async (app: FastifyInstance) =>
            void app.addHook(hook as "preHandler", (request, reply, done) => limitOf(setup).hook(request, reply, done)),
          { [Symbol.for("skip-override")]: true, limiter: limit.limiter, limiters: limit.limiters, close: limit.close },
        ) as unknown as RateLimitPlugin;
      });
      build(app, steps, limits, handler);
      await app.listen({ port: 0, host });
      return { server: app.server, limits };
    },
  };
}

function isUnder(url: string, path: string): boolean {
  return url === path || url.startsWith(`${path}/`) || url.startsWith(`${path}?`);
}
