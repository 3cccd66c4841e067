import { once } from "node:events";
import type { Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import {
  type Adapter,
  andThen,
  forRequests,
  type Handler,
  type LimitSetup,
  madeAnew,
  type Reply,
  type RequestView,
  type Step,
} from "@floodgate/conformance/adapter";
import { memoryStore } from "@floodgate/store-memory";
import Router from "@koa/router";
import type Koa from "koa";
import mount from "koa-mount";
import { type RateLimitMiddleware, rateLimit } from "../src/index.js";

/** The common part of Koa 2 and 3. */
export type KoaModule = new () => Koa;

const view = (ctx: Koa.Context): RequestView => ({
  method: ctx.method,
  path: ctx.originalUrl,
  body: (ctx.request as { body?: unknown }).body,
  header: (name) => ctx.headers[name.toLowerCase()]?.toString(),
  decision: (name) => ctx.state[name],
});

/** Parses JSON; unlike other parsers it keeps `__proto__`. */
const parseJson: Koa.Middleware = async (ctx, next) => {
  if (ctx.is("json")) Object.assign(ctx.request, { body: JSON.parse(await text(ctx.req)) });
  await next();
};

function send(ctx: Koa.Context, { status, body, chunks, raw }: Reply): void {
  if (raw === true) {
    ctx.respond = false;
    ctx.res.writeHead(status ?? 200, { "content-type": "application/json" }).end(JSON.stringify(body));
    return;
  }
  if (status !== undefined) ctx.status = status;
  if (chunks === undefined) {
    ctx.type = "json";
    ctx.body = JSON.stringify(body) ?? "";
  } else {
    ctx.body = Readable.from(chunks);
  }
}

function limitOf(setup: LimitSetup): RateLimitMiddleware<string> {
  const { onLimited } = setup;
  const options = forRequests<Koa.Context>(setup, view);
  if (typeof onLimited !== "function")
    return rateLimit<Koa.Context, string, string>(onLimited === undefined ? options : { ...options, onLimited });
  return rateLimit<Koa.Context, string, string>({
    ...options,
    onLimited: (ctx, decision) => andThen(onLimited(view(ctx), decision), (reply) => reply && send(ctx, reply)),
  });
}

function rewriting({ rewrite, to }: { rewrite: string; to: string }): Koa.Middleware {
  return (ctx, next) => {
    if (ctx.path.startsWith(`${rewrite}/`)) ctx.path = to + ctx.path.slice(rewrite.length);
    return next();
  };
}

/** Describes Koa to the conformance suite. */
export function koaAdapter(name: string, koa: KoaModule): Adapter {
  /** A step as app middleware. Limits are mounted on the app, because a router runs its middlewares only if a route matches. */
  function inApp(step: Step, limits: readonly Koa.Middleware[], fallback: Handler): Koa.Middleware {
    if ("limit" in step) return step.path === undefined ? of(limits, step.limit) : mount(step.path, of(limits, step.limit));
    if ("rewrite" in step) return rewriting(step);
    if ("router" in step && step.app === true) {
      const inner = new koa();
      for (const one of step.steps) inner.use(inApp(one, limits, fallback));
      return mount(step.router, inner);
    }
    const router = new Router();
    inRouter(router, step, limits, fallback);
    return router.routes() as unknown as Koa.Middleware;
  }

  function inRouter(router: Router, step: Step, limits: readonly Koa.Middleware[], fallback: Handler): void {
    if ("rewrite" in step) throw new Error("@koa/router has chosen its routes when its middlewares run");
    if ("limit" in step) {
      if (step.path === undefined) router.use(of(limits, step.limit));
      else router.use(step.path, of(limits, step.limit));
    } else if ("router" in step) {
      const inner = new Router();
      for (const one of step.steps) inRouter(inner, one, limits, fallback);
      router.use(step.router, inner.routes());
    } else {
      const { handler = fallback } = step;
      const before = (step.limits ?? []).map((limit) => of(limits, limit));
      router[step.method ?? "get"](step.route, ...before, async (ctx) => {
        const context = ctx as unknown as Koa.Context;
        send(context, await handler(view(context), context.state["rateLimit"]));
      });
    }
  }

  return {
    name,
    proxies: ["one hop", "forgeable"],
    outer: true,
    seesSending: true,
    begins: true,
    presets: true,
    http2: true,
    // A store takes the memory of its most keys when it is made, which is slow for thousands of stores.
    store: (clock) => memoryStore({ clock, maxKeys: 10_000 }),
    async start({ limits: setups, anew, steps, proxy, host, http2, handler, onError, outer, begins, presets = {} }) {
      const app = new koa();
      app.on("error", onError);
      if (proxy !== undefined) app.proxy = true;
      if (proxy === "one hop") app.maxIpsCount = 1;
      app.use(parseJson);
      app.use((ctx, next) => {
        ctx.set(presets);
        return next();
      });
      if (outer !== undefined) {
        app.use(async (ctx, next) => {
          await next();
          outer((name) => ctx.response.get(name) || undefined);
        });
      }
      if (begins === true) {
        app.use((ctx, next) => {
          ctx.respond = false;
          ctx.status = 200;
          ctx.flushHeaders();
          return next();
        });
      }
      const limits = setups.map((setup) => (anew === true ? madeAnew(() => limitOf(setup)) : limitOf(setup)));
      for (const step of steps) app.use(inApp(step, limits, handler));
      return { server: await listening(app, host, http2), limits };
    },
  };
}

function of(limits: readonly Koa.Middleware[], index: number): Koa.Middleware {
  return limits[index] as Koa.Middleware;
}

/** Serves an app on a free port of 127.0.0.1 or another host. */
export async function listening(app: Koa, host = "127.0.0.1", http2 = false): Promise<Server> {
  const server = http2 ? (createHttp2Server(app.callback()).listen(0, host) as unknown as Server) : app.listen(0, host);
  await once(server, "listening");
  return server;
}
