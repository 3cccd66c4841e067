import { once } from "node:events";
import type { Server } from "node:http";
import { Readable } from "node:stream";
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
import type { Decision } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import type { Express, NextFunction, Request, Response, Router } from "express";
import { type RateLimitMiddleware, rateLimit } from "../src/index.js";

/** The part of Express 4 and 5 that builds an app. */
export interface ExpressModule {
  (): Express;
  Router(): Router;
  json(): ReturnType<typeof import("express")["json"]>;
}

const view = (request: Request): RequestView => ({
  method: request.method,
  path: request.originalUrl,
  body: request.body,
  header: (name) => request.get(name),
  decision: (name) => (request as unknown as Record<string, Decision | undefined>)[name],
});

export function send(response: Response, { status, body, chunks, raw }: Reply): void {
  if (raw === true) {
    response.writeHead(status ?? response.statusCode, { "content-type": "application/json" }).end(JSON.stringify(body));
    return;
  }
  if (status !== undefined) response.status(status);
  if (chunks === undefined) response.json(body);
  else Readable.from(chunks).pipe(response);
}

function limitOf(setup: LimitSetup): RateLimitMiddleware {
  const { onLimited } = setup;
  const options = forRequests<Request>(setup, view);
  if (typeof onLimited !== "function")
    return rateLimit<Request, Response, string>(onLimited === undefined ? options : { ...options, onLimited });
  return rateLimit<Request, Response, string>({
    ...options,
    onLimited: (request, response, decision) => andThen(onLimited(view(request), decision), (reply) => reply && send(response, reply)),
  });
}

/** Describes Express to the conformance suite. */
export function expressAdapter(name: string, express: ExpressModule): Adapter {
  function build(router: Router, steps: readonly Step[], limits: readonly RateLimitMiddleware[], fallback: Handler): void {
    for (const step of steps) {
      if ("limit" in step) {
        router.use(step.path ?? "/", limits[step.limit] as RateLimitMiddleware);
      } else if ("rewrite" in step) {
        router.use((request: Request, _response: Response, next: NextFunction) => {
          if (request.url.startsWith(`${step.rewrite}/`)) request.url = step.to + request.url.slice(step.rewrite.length);
          next();
        });
      } else if ("router" in step) {
        const inner = step.app === true ? (express() as unknown as Router) : express.Router();
        build(inner, step.steps, limits, fallback);
        router.use(step.router, inner);
      } else {
        const { handler = fallback } = step;
        const before = (step.limits ?? []).map((limit) => limits[limit] as RateLimitMiddleware);
        router[step.method ?? "get"](step.route, ...before, async (request: Request, response: Response, next: NextFunction) => {
          try {
            send(response, await handler(view(request), request.rateLimit));
          } catch (error) {
            next(error);
          }
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
    // A store takes the memory of its most keys when it is made, which is slow for thousands of stores.
    store: (clock) => memoryStore({ clock, maxKeys: 10_000 }),
    async start({ limits: setups, anew, steps, proxy, host, handler, onError, outer, begins, presets = {} }) {
      const app = express();
      if (proxy !== undefined) app.set("trust proxy", proxy === "forgeable" ? true : 1);
      app.use(express.json(), (_request: Request, response: Response, next: NextFunction) => {
        // Not `response.set`, which edits types.
        for (const name in presets) response.setHeader(name, presets[name] as string);
        next();
      });
      if (outer !== undefined) {
        app.use((_request: Request, response: Response, next: NextFunction) => {
          response.once("finish", () => outer((name) => response.get(name)));
          next();
        });
      }
      if (begins === true) {
        app.use((_request: Request, response: Response, next: NextFunction) => {
          response.flushHeaders();
          next();
        });
      }
      const limits = setups.map((setup) => (anew === true ? madeAnew(() => limitOf(setup)) : limitOf(setup)));
      build(app as unknown as Router, steps, limits, handler);
      app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
        onError(error);
        response.status(500).end();
      });
      return { server: await listening(app, host), limits };
    },
  };
}

/** Serves an app on a free port of 127.0.0.1 or another host. */
export async function listening(app: Express, host = "127.0.0.1"): Promise<Server> {
  const server = app.listen(0, host);
  await once(server, "listening");
  return server;
}
