import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type Adapter,
  forRequests,
  type Handler,
  type LimitSetup,
  madeAnew,
  type Reply,
  type RequestView,
  type Step,
} from "@floodgate/conformance/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { StatusCode } from "hono/utils/http-status";
import { type RateLimitMiddleware, rateLimit } from "../src/index.js";

interface TestEnv {
  Variables: { body: unknown };
}

const view = (c: Context): RequestView => ({
  method: c.req.method,
  path: c.req.path,
  body: c.get("body"),
  header: (name) => c.req.header(name),
  decision: (name) => c.get(name),
});

async function send(c: Context, { status, body, chunks, raw }: Reply): Promise<Response> {
  if (raw === true) return await immutable(body, status);
  if (status !== undefined) c.status(status as StatusCode);
  if (chunks !== undefined) return c.body(ReadableStream.from(chunks).pipeThrough(new TextEncoderStream()));
  return body === undefined ? c.body(null) : c.json(body as object);
}

/** A response with immutable headers, unless its status cannot come from `fetch`. */
async function immutable(body: unknown, status: number | undefined): Promise<Response> {
  const text = JSON.stringify(body);
  if (status === undefined) return await fetch(`data:application/json,${encodeURIComponent(text)}`);
  return new Response(text, { status, headers: { "content-type": "application/json" } });
}

function limitOf(setup: LimitSetup): RateLimitMiddleware<string> {
  const { onLimited } = setup;
  const options = forRequests<Context>(setup, view);
  if (typeof onLimited !== "function") return rateLimit(onLimited === undefined ? options : { ...options, onLimited });
  return rateLimit({
    ...options,
    onLimited: async (c, decision) => {
      const reply = await onLimited(view(c), decision);
      return reply && (await send(c, reply));
    },
  });
}

function build(
  app: Hono<TestEnv>,
  steps: readonly Step[],
  limits: readonly RateLimitMiddleware<string>[],
  fallback: Handler,
  whole: Hono<TestEnv> = app,
): void {
  for (const step of steps) {
    if ("limit" in step) {
      app.use(`${step.path ?? ""}/*`, limits[step.limit] as RateLimitMiddleware);
    } else if ("rewrite" in step) {
      app.use(async (c, next) => {
        const url = new URL(c.req.url);
        if (!url.pathname.startsWith(`${step.rewrite}/`)) return await next();
        url.pathname = step.to + url.pathname.slice(step.rewrite.length);
        return whole.fetch(new Request(url, c.req.raw), c.env);
      });
    } else if ("router" in step) {
      const inner = step.app === true ? new Hono<TestEnv>() : app.basePath(step.router);
      build(inner, step.steps, limits, fallback, whole);
      if (step.app === true) app.route(step.router, inner);
    } else {
      const { handler = fallback } = step;
      const before = (step.limits ?? []).map((limit) => limits[limit] as RateLimitMiddleware);
      app.on((step.method ?? "get").toUpperCase(), [step.route], ...before, async (c) =>
        send(c, await handler(view(c), c.get("rateLimit"))),
      );
    }
  }
}

/** Describes Hono on a runtime's server to the conformance suite. */
export function honoAdapter(name: string, serverOf: (app: Hono<TestEnv>) => Server, http2ServerOf?: typeof serverOf): Adapter {
  return {
    name,
    proxies: [],
    routesAhead: true,
    outer: true,
    presets: true,
    seesSending: http2ServerOf !== undefined,
    http2: http2ServerOf !== undefined,
    // A store takes the memory of its most keys when it is made, which is slow for thousands of stores.
    store: (clock) => memoryStore({ clock, maxKeys: 10_000 }),
    async start({ limits: setups, anew, steps, host, http2, handler, onError, outer, presets = {} }) {
      const app = new Hono<TestEnv>();
      app.use(bodyLimit({ maxSize: 100_000 }), async (c, next) => {
        if (c.req.header("content-type") === "application/json") c.set("body", await c.req.json());
        // Over HTTP/2, @hono/node-server cuts off a long response if the request's body is unread.
        else if (http2) await c.req.arrayBuffer();
        for (const name in presets) c.header(name, presets[name]);
        await next();
      });
      if (outer !== undefined) {
        app.use(async (c, next) => {
          await next();
          outer((name) => c.res.headers.get(name) ?? undefined);
        });
      }
      const limits = setups.map((setup) => (anew === true ? madeAnew(() => limitOf(setup)) : limitOf(setup)));
      build(app, steps, limits, handler);
      app.onError((error, c) => {
        onError(error);
        return c.body(null, 500);
      });
      return { server: await listening((http2 && http2ServerOf ? http2ServerOf : serverOf)(app), host), limits };
    },
  };
}

/** Starts a server on a free port of 127.0.0.1 or another host. */
export async function listening(server: Server, host = "127.0.0.1"): Promise<Server> {
  server.listen(0, host);
  await once(server, "listening");
  return server;
}

/** Runs a test against a listening server. */
export async function serving(server: Server, run: (url: string) => Promise<void>): Promise<void> {
  await listening(server);
  try {
    await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
