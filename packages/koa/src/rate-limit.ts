import type { Decision } from "@floodgate/core";
import type { Outcome, RateLimitControls, RateLimitOptions } from "@floodgate/core/adapter";
import { afterOnLimited, canReject, contextMiddleware, isLimitHeader, passInTurn, RateLimit, setHeaders } from "@floodgate/core/adapter";
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
  const limit = new RateLimit<Ctx>("rateLimit", options, ["onLimited"], koaReader, memoryStore);
  return contextMiddleware<Ctx, Next, unknown>(limit, {
    takes: "a context of Koa",
    isContext: ({ app, req }) => app !== undefined && req !== undefined,
    isBegun: ({ res }) => res.headersSent,
    onLimited: options.onLimited,
    example: '(ctx) => { ctx.body = "Slow down"; }',
    apply(ctx, next, outcome, wasBegun) {
      if (outcome.decision !== undefined) ctx.state[limit.decisionName] = outcome.decision;
      // Cheaper than `ctx.set`, with the same result.
      setHeaders(ctx.res, outcome.headers);
      if (!keeping.has(ctx.app)) keepHeadersOnError(ctx.app);
      if (outcome.action === "pass") return passInTurn<unknown>(ctx.res, outcome, limit.waiting, next, () => undefined);
      return canReject(ctx.res, wasBegun) ? reject(ctx, outcome, options.onLimited) : undefined;
    },
  }) as unknown as RateLimitMiddleware<Name>;
}

function reject<Ctx extends KoaContext>(ctx: Ctx, outcome: Outcome, onLimited: KoaRateLimitOptions<Ctx>["onLimited"]): unknown {
  ctx.status = outcome.status;
  // An outer middleware may have left the response to an inner one, which does not run now.
  ctx.respond = true;
  const { body } = ctx;
  const finish = (): void => {
    // Somebody has answered.
    if (ctx.body !== body || ctx.status !== outcome.status || ctx.respond === false || ctx.headerSent) return;
    // Cheaper than `ctx.type`, which looks the type up.
    ctx.res.setHeader("Content-Type", outcome.body.contentType);
    ctx.body = outcome.body.text;
  };
  return afterOnLimited(onLimited && (() => onLimited(ctx, outcome.decision)), finish);
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
    const res = ctx?.res;
    if (res === undefined) return;
    const { getHeaderNames } = res;
    res.getHeaderNames = () => getHeaderNames.call(res).filter((name) => !isLimitHeader(name, res.getHeader(name)));
    queueMicrotask(() => Object.assign(res, { getHeaderNames }));
  });
}
