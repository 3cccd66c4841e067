import { once } from "node:events";
import type { Server } from "node:http";
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
import { IttyRouter, Router } from "itty-router";
import { type Checked, decisionOf, type FetchContext, type FetchRequest, type RateLimitWrapper, rateLimit } from "../src/index.js";

/** Of one request. */
interface Context extends FetchContext {
  body?: unknown;
  checks: Checked[];
}

type Fetch = (request: Request, context?: object) => Promise<Response>;
/** Passes a request on by returning nothing. */
type Middleware = (request: Request, context: Context) => Promise<Response | undefined>;
/** The part of itty-router that builds an app. */
// biome-ignore lint/suspicious/noExplicitAny: its own types name each method's handlers
type Routes = any;

const view = ({ request, context }: FetchRequest): RequestView => ({
  method: request.method,
  path: new URL(request.url).pathname,
  body: context["body"],
  header: (name) => request.headers.get(name) ?? undefined,
  decision: (name) => decisionOf(request, name),
});

async function send({ status = 200, body, chunks, raw }: Reply): Promise<Response> {
  if (chunks !== undefined) return new Response(ReadableStream.from(chunks).pipeThrough(new TextEncoderStream()), { status });
  // Its headers cannot change.
  if (raw === true && status === 200) return await fetch(`data:application/json,${encodeURIComponent(JSON.stringify(body))}`);
  return body === undefined ? new Response(null, { status }) : Response.json(body, { status });
}

function limitOf(setup: LimitSetup): RateLimitWrapper<Context> {
  const { onLimited } = setup;
  const options = forRequests<FetchRequest<Context>>(setup, view);
  if (typeof onLimited !== "function") return rateLimit<Context, string>(onLimited === undefined ? options : { ...options, onLimited });
  return rateLimit<Context, string>({
    ...options,
    onLimited: async (call, decision) => {
      const reply = await onLimited(view(call), decision);
      return reply && (await send(reply));
    },
  });
}

const middlewareOf =
  (limit: RateLimitWrapper<Context>): Middleware =>
  async (request, context) => {
    const checked = await limit.check(request, context);
    context.checks.push(checked);
    return checked.response;
  };

/** Limits before all routes use `check`; those of a route wrap its handler. */
function build(
  router: Routes,
  base: string,
  steps: readonly Step[],
  limits: readonly RateLimitWrapper<Context>[],
  middlewares: readonly Middleware[],
  fallback: Handler,
  whole: Fetch,
): void {
  for (const step of steps) {
    if ("limit" in step) {
      router.all(`${step.path ?? ""}/*`, middlewares[step.limit]);
    } else if ("rewrite" in step) {
      router.all("*", (request: Request, { checks: _, ...context }: Context) => {
        const url = new URL(request.url);
        if (!url.pathname.startsWith(`${step.rewrite}/`)) return undefined;
        url.pathname = step.to + url.pathname.slice(step.rewrite.length);
        const { runtime } = request as { runtime?: unknown };
        return whole(Object.assign(new Request(url, { headers: [...request.headers] }), { runtime }), context);
      });
    } else if ("router" in step) {
      const inner = IttyRouter({ base: base + step.router });
      build(inner, base + step.router, step.steps, limits, middlewares, fallback, whole);
      router.all(`${step.router}/*`, inner.fetch);
    } else {
      const { handler = fallback } = step;
      const serve = async (request: Request, context: Context) => send(await handler(view({ request, context }), decisionOf(request)));
      const limited = (step.limits ?? []).reduceRight((next, index) => (limits[index] as RateLimitWrapper<Context>)(next), serve);
      const routed = (request: Request & { route: string }, context: Context) =>
        limited(request, Object.assign(context, { route: request.route }));
      router[step.method ?? "get"](step.route, routed);
      if (step.method === undefined) router.head(step.route, routed);
    }
  }
}

/** Describes an app of itty-router on a server to the conformance suite. */
export function fetchAdapter(name: string, serverOf: (fetch: Fetch) => Server, http2ServerOf?: typeof serverOf): Adapter {
  return {
    name,
    proxies: [],
    outer: true,
    seesSending: http2ServerOf !== undefined,
    http2: http2ServerOf !== undefined,
    // A store takes the memory of its most keys when it is made, which is slow for thousands of stores.
    store: (clock) => memoryStore({ clock, maxKeys: 10_000 }),
    async start({ limits: setups, anew, steps, host, http2, handler, onError, outer }) {
      const limits = setups.map((setup) => limitOf(setup));
      const middlewares = setups.map((setup, i) =>
        anew === true ? madeAnew(() => middlewareOf(limitOf(setup))) : middlewareOf(limits[i] as RateLimitWrapper<Context>),
      );
      const router = Router({
        // Inside the router, because servers leave a rejected promise unhandled, and a body is rejected if its client disconnects.
        before: [
          async (request: Request, context: Context) => {
            if (request.headers.get("content-type") === "application/json") context.body = await request.json();
          },
        ],
        catch: (error: unknown) => {
          onError(error);
          return new Response(null, { status: 500 });
        },
        finally: [
          (response: Response, _request: Request, { checks }: Context) =>
            checks.reduceRight((sent, checked) => checked.finish(sent), response ?? new Response(null, { status: 404 })),
        ],
      } as never);
      const whole: Fetch = (request, context) => router.fetch(request as never, { ...context, checks: [] } satisfies Context);
      build(router, "", steps, limits, middlewares, handler, whole);
      const served: Fetch = async (request, context) => {
        const response = await whole(request, context);
        outer?.((header) => response.headers.get(header) ?? undefined);
        return response;
      };
      const server = (http2 && http2ServerOf ? http2ServerOf : serverOf)(served);
      server.listen(0, host ?? "127.0.0.1");
      await once(server, "listening");
      return { server, limits };
    },
  };
}
