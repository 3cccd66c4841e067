import type { Decision } from "@floodgate/core";
import type { Outcome, RateLimitControls, RateLimitOptions } from "@floodgate/core/adapter";
import {
  andThen,
  canReject,
  clientClosedRequest,
  contextMiddleware,
  functionOrNothing,
  passInTurn,
  RateLimit,
  setHeaders,
  withFaults,
} from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { type KoaContext, koaReader, type RateLimitState } from "./request.js";

type Next = () => Promise<unknown>;

export interface KoaRateLimitOptions<Ctx extends KoaContext, Own extends string = never, Name extends string = "rateLimit">
  extends RateLimitOptions<Ctx, Own> {
  /**
   * Answers a rejected request in place of the problem+json body. The headers and the status (429) are set already. It may throw. If it sets
   * neither a body nor another status, the usual body is sent.
   */
  onLimited?: (ctx: Ctx, decision: Decision | undefined) => unknown;
  /** The name of the decision in `ctx.state`. Default `"rateLimit"`. */
  decisionName?: Name;
}

/** Koa middleware with its controls. Its type names only what it adds to the context, so it fits every app. */
export interface RateLimitMiddleware<Name extends string = "rateLimit"> extends RateLimitControls {
  (ctx: { state: RateLimitState<Name> }, next: Next): unknown;
}

/**
 * Makes a Koa middleware that limits requests: by default per client IP, in memory.
 *
 *     app.use(rateLimit({ limit: 100, window: "1m" }));
 *
 * @throws FloodgateError if an option is invalid: when called, not at a request.
 */
export function rateLimit<
  Ctx extends KoaContext = KoaContext,
  // TypeScript infers no names if a call gives the context's type, so any name is accepted there.
  const Own extends string = [KoaContext] extends [Ctx] ? never : string,
  const Name extends string = "rateLimit",
>(options: KoaRateLimitOptions<Ctx, Own, Name>): RateLimitMiddleware<NoInfer<Name>> {
  const { onLimited } = options ?? {};
  const limit = new RateLimit<Ctx>("rateLimit", options, ["onLimited"], koaReader, memoryStore);
  functionOrNothing("rateLimit", "onLimited", onLimited, '(ctx) => { ctx.body = "Slow down"; }');

  const apply = (ctx: Ctx, next: Next, outcome: Outcome, wasBegun: boolean): unknown => {
    const { decision, headers } = outcome;
    if (decision !== undefined) ctx.state[limit.decisionName] = decision;
    if (headers.length > 0) {
      // Cheaper than `ctx.set`, with the same result.
      setHeaders(ctx.res, headers);
      if (!keeping.has(ctx.app)) keepHeadersOnError(ctx.app);
    }
    // The client may have disconnected.
    if (outcome.action === "reject") return ctx.writable && canReject(ctx.res, wasBegun) ? reject(ctx, outcome, onLimited) : undefined;
    // Nobody receives the status, but an outer logger may log it.
    const leave = (): void => {
      ctx.status = clientClosedRequest;
    };
    return passInTurn<unknown>(ctx.res, outcome, limit.waiting, next, leave);
  };
  const isContext = ({ app, req }: Ctx): boolean => app !== undefined && req !== undefined;
  const isBegun = ({ res }: Ctx): boolean => res.headersSent;
  return contextMiddleware(limit, "a context of Koa", isContext, apply, isBegun) as unknown as RateLimitMiddleware<Name>;
}

function reject<Ctx extends KoaContext>(ctx: Ctx, outcome: Outcome, onLimited: KoaRateLimitOptions<Ctx>["onLimited"]): unknown {
  ctx.status = outcome.status;
  // An outer middleware may have left the response to an inner one, which does not run now.
  ctx.respond = true;
  const { body } = ctx;
  const finish = (): void => {
    const isAnswered = ctx.body !== body || ctx.status !== outcome.status || ctx.respond === false || ctx.headerSent || !ctx.writable;
    if (isAnswered) return;
    // Cheaper than `ctx.type`, which looks the type up.
    ctx.res.setHeader("Content-Type", outcome.body.contentType);
    ctx.body = outcome.body.text;
  };
  return andThen(onLimited && withFaults(() => onLimited(ctx, outcome.decision)), finish);
}

/** The apps whose error responses keep the headers of limits. */
const keeping = new WeakSet<object>();

/**
 * Keeps a limit's headers on error responses. Koa's error handling, also after `ctx.throw(404)`, removes all headers that
 * `res.getHeaderNames` lists. While it runs, that list omits the limit's headers. (`error.headers` would not work for an error object that
 * several requests throw.) Errors that an outer middleware catches lose no headers.
 */
function keepHeadersOnError(app: KoaContext["app"]): void {
  keeping.add(app);
  app.on("error", (_error, ctx) => {
    const { res } = (ctx ?? {}) as Partial<KoaContext>;
    if (res === undefined) return;
    const { getHeaderNames } = res;
    const isKept = (name: string): boolean =>
      /^(x-)?ratelimit(-|$)|^retry-after$/.test(name) || (name === "cache-control" && res.getHeader(name) === "no-store");
    res.getHeaderNames = () => getHeaderNames.call(res).filter((name) => !isKept(name));
    queueMicrotask(() => Object.assign(res, { getHeaderNames }));
  });
}
