import type { Decision } from "@floodgate/core";
import {
  andThen,
  answeredBy,
  clientClosedRequest,
  foreignRequest,
  functionOrNothing,
  isPromise,
  type Outcome,
  type Promised,
  RateLimit,
  type RateLimitControls,
  type RateLimitOptions,
  responseOf,
  turnOf,
  WebResponseEnd,
  withControls,
  withHeaders,
} from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { type Checked, type Decided, type FetchContext, type FetchRequest, fetchReader, pairs } from "./check.js";

export interface FetchRateLimitOptions<Context extends FetchContext, Own extends string = never>
  extends RateLimitOptions<FetchRequest<Context>, Own> {
  /**
   * Answers a rejected request in place of the problem+json body; if it returns undefined, the usual body is sent. A response with the status
   * 200 gets that of the rejection (429). The headers are added.
   */
  onLimited?: (request: FetchRequest<Context>, decision: Decision | undefined) => Promised<Response | undefined>;
  /** Keeps the runtime alive until refunds and settlements are done, if neither the context nor the request has `waitUntil`. */
  waitUntil?: (work: Promise<unknown>) => void;
}

type Handler<Req, Args extends readonly unknown[]> = (request: Req, ...args: Args) => Promised<Response>;

/** A limit with its controls. Called with a handler, it returns the handler behind the limit. */
export interface RateLimitWrapper<Context extends FetchContext = FetchContext> extends RateLimitControls {
  <Req extends Request, Args extends readonly unknown[]>(handler: Handler<Req, Args>): (request: Req, ...args: Args) => Promise<Response>;
  /**
   * Checks a request, once its turn has come (`leakyBucket`).
   * @throws FloodgateError `FLOODGATE_NO_CLIENT_IP` if a limit counts by address and neither the context nor the runtime tells one, and what
   * functions of the app throw.
   */
  check(request: Request, context?: Context): Promise<Checked>;
}

/**
 * Makes a limit for handlers of `Request` and `Response`: by default per client IP, in memory.
 *
 *     const limit = rateLimit({ limit: 100, window: "1m" });
 *     export default { fetch: limit((request) => new Response("hello")) };     // Bun, Deno, Workers, srvx
 *     const { response, headers } = await limit.check(request, { ip });        // anywhere else
 *
 * @throws FloodgateError if an option is invalid: when called, not at a request.
 */
export function rateLimit<
  Context extends FetchContext = FetchContext,
  // TypeScript infers no names if a call gives the context's type, so any name is accepted there.
  const Own extends string = [FetchContext] extends [Context] ? never : string,
>(options: FetchRateLimitOptions<Context, Own>): RateLimitWrapper<Context> {
  const limit = new RateLimit<FetchRequest<Context>>("rateLimit", options, ["onLimited", "waitUntil"], fetchReader, memoryStore);
  const { onLimited, waitUntil } = options;
  functionOrNothing("rateLimit", "onLimited", onLimited, example);
  functionOrNothing("rateLimit", "waitUntil", waitUntil, "after");

  const apply = (call: FetchRequest<Context>, more: readonly unknown[], outcome: Outcome): Promised<Decided> => {
    const { headers, status, body, decision, delayMs, afterResponse } = outcome;
    const keepAlive = (work: Promise<unknown>): void =>
      ([{ waitUntil }, call.context, ...more, call.request] as Required<FetchRateLimitOptions<Context>>[])
        .find((passed) => typeof passed?.waitUntil === "function")
        ?.waitUntil(work);
    const end = afterResponse && new WebResponseEnd(call.request, call.context, afterResponse, keepAlive);
    const finish = <R extends Response | undefined>(response: R, without?: number): R => {
      const sent = (responseOf(response, "handler", '() => new Response("hello")') && withHeaders(response as Response, headers)) as R;
      return end?.watch(sent, without) ?? sent;
    };
    const answered = (response?: Response): Decided => ({ response, outcome, finish });
    if (outcome.action === "reject") {
      const reject = (own?: Response | null): Decided =>
        answered(
          own
            ? withHeaders(own.status === 200 ? new Response(own.body, { status, headers: own.headers }) : own, headers)
            : // Made with all of its headers, which costs less than to add them.
              new Response(body.text, { status, headers: [["content-type", body.contentType], ...pairs(headers)] }),
        );
      return onLimited ? answeredBy(() => onLimited(call, decision), example).then(reject) : reject();
    }
    if (!delayMs) return answered();
    return turnOf(call.request, call.context, delayMs, limit.waiting).then((isServed) =>
      answered(isServed ? undefined : new Response(null, { status: clientClosedRequest })),
    );
  };

  const decide = (request: Request, context: unknown, more: readonly unknown[]): Promised<Decided> => {
    if (typeof request?.headers?.get !== "function") throw foreignRequest("a Request of the Fetch API", request);
    const call = { request, context: (context ?? {}) as Context };
    return andThen(limit.decide(call), (outcome) => apply(call, more, outcome));
  };

  const wrap = (handler: Handler<Request, readonly unknown[]>) => {
    functionOrNothing("@floodgate/fetch", "handler", handler ?? null, "(request) => ..., or limit.check(request)");
    return async (request: Request, context: unknown, ...more: readonly unknown[]): Promise<Response> => {
      const deciding = decide(request, context, more);
      const { response, finish } = isPromise(deciding) ? await deciding : deciding;
      if (response) return response;
      try {
        const answered = await handler(request, context, ...more);
        // On Bun, the handler of a WebSocket answers nothing. On Deno, a request has no headers after it became one.
        return finish(answered, !answered && request.headers.get("upgrade") ? 101 : 500);
      } catch (error) {
        // React Router and others throw responses too.
        throw finish(error instanceof Response ? error : undefined) ?? error;
      }
    };
  };
  const check = async (request: Request, context?: Context): Promise<Checked> => {
    const { response, outcome, finish } = await decide(request, context, []);
    // The wrapper does without this object: one with a getter takes a microsecond to make.
    return {
      response,
      decision: outcome.decision,
      get headers() {
        return new Headers(pairs(outcome.headers));
      },
      finish,
    };
  };
  return withControls(Object.assign(wrap, { check }), limit) as unknown as RateLimitWrapper<Context>;
}

const example = '() => new Response("Slow down", { status: 429 })';
