import type { Decision } from "@floodgate/core";
import {
  answeredBy,
  clientClosedRequest,
  foreignRequest,
  functionOrNothing,
  HeldRequests,
  isPromise,
  type Outcome,
  type Promised,
  RateLimit,
  type RateLimitControls,
  type RateLimitOptions,
  turnOf,
  withControls,
  withHeaders,
} from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { type Checked, checkOf, type FetchContext, type FetchRequest, fetchReader, pairs } from "./check.js";

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
  const { onLimited, waitUntil } = options ?? {};
  const limit = new RateLimit<FetchRequest<Context>>("rateLimit", options, ["onLimited", "waitUntil"], fetchReader, memoryStore);
  functionOrNothing("rateLimit", "onLimited", onLimited, example);
  functionOrNothing("rateLimit", "waitUntil", waitUntil, "(work) => after(work)");
  const waiting = new HeldRequests();

  const apply = (call: FetchRequest<Context>, more: readonly unknown[], outcome: Outcome): Promised<Checked> => {
    const keepAlive = (work: Promise<unknown>): void => {
      const runtimes = [{ waitUntil }, call.context, ...more, call.request] as (FetchContext | undefined)[];
      runtimes.find((passed) => typeof passed?.waitUntil === "function")?.waitUntil?.(work);
    };
    const checked = (response?: Response): Checked => checkOf(call, outcome, response, keepAlive);
    if (outcome.action === "reject") {
      if (onLimited === undefined) return checked(answer(outcome));
      return answeredBy(() => onLimited(call, outcome.decision), example).then((own) => checked(answer(outcome, own)));
    }
    if (outcome.delayMs === 0) return checked();
    return turnOf(call.request, call.context, outcome.delayMs, waiting).then((isServed) =>
      checked(isServed ? undefined : new Response(null, { status: clientClosedRequest })),
    );
  };

  const decide = (request: Request, context: unknown, more: readonly unknown[]): Promised<Checked> => {
    if (typeof request?.headers?.get !== "function") throw foreignRequest("a Request of the Fetch API", request);
    const call = { request, context: (context ?? {}) as Context };
    const outcome = limit.decide(call);
    return isPromise(outcome) ? outcome.then((later) => apply(call, more, later)) : apply(call, more, outcome);
  };

  const wrap =
    (handler: Handler<Request, readonly unknown[]>) =>
    async (request: Request, context: unknown, ...more: readonly unknown[]): Promise<Response> => {
      const checking = decide(request, context, more);
      const checked = isPromise(checking) ? await checking : checking;
      if (checked.response !== undefined) return checked.response;
      try {
        return checked.finish(await handler(request, context, ...more));
      } catch (error) {
        // React Router and others throw responses too.
        if (error instanceof Response) throw checked.finish(error);
        checked.finish(undefined);
        throw error;
      }
    };
  const check = async (request: Request, context?: Context): Promise<Checked> => decide(request, context, []);
  return withControls(Object.assign(wrap, { check }), limit, waiting) as unknown as RateLimitWrapper<Context>;
}

const example = '() => new Response("Slow down", { status: 429 })';

/** The response to a rejected request. @param own what `onLimited` has answered. */
function answer({ status, body, headers }: Outcome, own?: Response): Response {
  // Made with all of its headers, which costs less than to add them.
  if (own === undefined) return new Response(body.text, { status, headers: [["Content-Type", body.contentType], ...pairs(headers)] });
  return withHeaders(own.status === 200 ? new Response(own.body, { status, headers: own.headers }) : own, headers);
}
