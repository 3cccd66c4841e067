import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
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
import Router from "router";
import { decisionOf, type NodeRequest, type RateLimitMiddleware, rateLimit } from "../src/index.js";

const view = (request: NodeRequest): RequestView => ({
  method: request.method ?? "",
  path: request.originalUrl ?? "",
  body: request["body"],
  header: (name) => request.headers[name.toLowerCase()]?.toString(),
  decision: (name) => request[name],
});

function send(response: ServerResponse, { status, body, chunks, raw }: Reply): void {
  if (raw === true) response.writeHead(status ?? response.statusCode, { "content-type": "application/json" }).end(JSON.stringify(body));
  else {
    if (status !== undefined) response.statusCode = status;
    if (chunks !== undefined) Readable.from(chunks).pipe(response);
    else {
      // Not chained: with HTTP/2, `setHeader` returns nothing.
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(body));
    }
  }
}

function limitOf(setup: LimitSetup): RateLimitMiddleware {
  const { onLimited } = setup;
  const options = forRequests<NodeRequest>(setup, view);
  if (typeof onLimited !== "function")
    return rateLimit<NodeRequest, ServerResponse, string>(onLimited === undefined ? options : { ...options, onLimited });
  return rateLimit<NodeRequest, ServerResponse, string>({
    ...options,
    onLimited: (request, response, decision) => andThen(onLimited(view(request), decision), (reply) => reply && send(response, reply)),
  });
}

// biome-ignore lint/suspicious/noExplicitAny: it has no types of its own
type Routes = any;

function build(router: Routes, steps: readonly Step[], limits: readonly RateLimitMiddleware[], fallback: Handler): void {
  for (const step of steps) {
    if ("limit" in step) {
      router.use(step.path ?? "/", limits[step.limit] as never);
    } else if ("rewrite" in step) {
      router.use((request: IncomingMessage, _response: unknown, next: () => void) => {
        if (request.url?.startsWith(`${step.rewrite}/`)) request.url = step.to + request.url.slice(step.rewrite.length);
        next();
      });
    } else if ("router" in step) {
      const inner = Router();
      build(inner, step.steps, limits, fallback);
      router.use(step.router, inner);
    } else {
      const { handler = fallback } = step;
      const before = (step.limits ?? []).map((limit) => limits[limit] as never);
      // It passes what a promise rejects with to the error handling.
      router[step.method ?? "get"](step.route, ...before, async (request: IncomingMessage, response: ServerResponse) =>
        send(response, await handler(view(request), decisionOf(request))),
      );
    }
  }
}

/** The router of Express by itself, on Node's servers of HTTP/1 and HTTP/2. */
export const routerAdapter: Adapter = {
  name: "router",
  proxies: [],
  outer: true,
  seesSending: true,
  begins: true,
  presets: true,
  marksRequests: true,
  http2: true,
  // A store takes the memory of its most keys when it is made, which is slow for thousands of stores.
  store: (clock) => memoryStore({ clock, maxKeys: 10_000 }),
  async start({ limits: setups, anew, steps, host, http2, handler, onError, outer, begins, presets = {} }) {
    const router = Router();
    router.use(async (request: IncomingMessage, response: ServerResponse, next: () => void) => {
      if (request.headers["content-type"] === "application/json") Object.assign(request, { body: await json(request) });
      if (outer !== undefined) response.once("finish", () => outer((name) => response.getHeader(name)?.toString()));
      for (const name in presets) response.setHeader(name, presets[name] as string);
      if (begins === true) response.flushHeaders();
      next();
    });
    const limits = setups.map((setup) => (anew === true ? madeAnew(() => limitOf(setup)) : limitOf(setup)));
    build(router, steps, limits, handler);
    const listener: RequestListener = (request, response) =>
      router(request, response, (error: unknown) => {
        if (error !== undefined) onError(error);
        response.statusCode = error === undefined ? 404 : 500;
        response.end();
      });
    const server = http2 ? (createHttp2Server(listener as never) as unknown as Server) : createServer(listener);
    server.listen(0, host ?? "127.0.0.1");
    await once(server, "listening");
    return { server, limits };
  },
};
