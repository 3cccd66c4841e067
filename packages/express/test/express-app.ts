import { once } from "node:events";
import type { Server } from "node:http";
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
} from "@floodgate/conformance";
import { memoryStore } from "@floodgate/store-memory";
import type { Express, NextFunction, Request, Response, Router } from "express";
import { type RateLimitMiddleware, rateLimit } from "../src/index.js";

/** What of Express 4 and 5 an app is built of. */
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
});

function send(response: Response, { status, body, chunks }: Reply): void {
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
    onLimited: (request, response, decision) => andThen(onLimited(view(request), decision), (reply) => send(response, reply)),
  });
}

/** Describes Express to the conformance suite. */
export function expressAdapter(name: string, express: ExpressModule): Adapter {
  function build(router: Router, steps: readonly Step[], limits: readonly RateLimitMiddleware[], fallback: Handler): void {
    for (const step of steps) {
      if ("limit" in step) {
        router.use(step.path ?? "/", limits[step.limit] as RateLimitMiddleware);
      } else if ("router" in step) {
        const inner = express.Router();
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
    store: (clock) => memoryStore({ clock }),
    async start({ limits: setups, steps, proxy, handler, onError }) {
      const app = express();
      if (proxy !== undefined) app.set("trust proxy", proxy === "forgeable" ? true : 1);
      app.use(express.json());
      const limits = setups.map(limitOf);
      build(app as unknown as Router, steps, limits, handler);
      app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
        onError(error);
        response.status(500).end();
      });
      return { server: await listening(app), limits };
    },
  };
}

/** An app on a spare port of 127.0.0.1, or of another host. */
export async function listening(app: Express, host = "127.0.0.1"): Promise<Server> {
  const server = app.listen(0, host);
  await once(server, "listening");
  return server;
}
