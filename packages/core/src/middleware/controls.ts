import type { Limiter } from "../limits/limiter.js";
import { foreignRequest } from "../requests/foreign-request.js";
import type { Outcome } from "../responses/outcome.js";
import type { RateLimit } from "./rate-limit.js";

/** The members of a middleware. */
export interface RateLimitControls {
  /** The limiter of the first rule, or of the only one. */
  readonly limiter: Limiter;
  /** The limiters of all rules in force, by name. */
  readonly limiters: ReadonlyMap<string, Limiter>;
  /**
   * Releases held requests (`leakyBucket`) at once, stops following a source of rules, and gives the names of its limits back to the store.
   * The last rules stay active. The store and the source stay open, because they may be shared.
   */
  close(): void;
}

/** Adds the members to a middleware. They are getters, because the rules may change. */
export function withControls<Middleware extends object>(
  middleware: Middleware,
  limit: Pick<RateLimitControls, "limiters" | "close">,
): Middleware & RateLimitControls {
  return Object.defineProperties(middleware, {
    limiter: { get: () => limit.limiters.values().next().value, enumerable: true },
    limiters: { get: () => limit.limiters, enumerable: true },
    close: { value: () => limit.close(), enumerable: true },
  }) as Middleware & RateLimitControls;
}

/**
 * Makes a middleware of the form `(context, next)`.
 * @param takes what it takes, for an error: `"a context of Hono"`.
 * @param isContext whether a value is a context of the framework. Asked until the first one that is.
 * @param apply does what the limit has decided.
 * @param isBegun whether headers of the response were sent already. What it has answered before the limit was asked is passed to `apply`.
 */
export function contextMiddleware<Context, Next, Answer>(
  limit: RateLimit<Context>,
  takes: string,
  isContext: (value: Context) => boolean,
  apply: (context: Context, next: Next, outcome: Outcome, wasBegun: boolean) => Answer,
  isBegun?: (context: Context) => boolean,
): ((context: Context, next: Next) => Answer | Promise<Awaited<Answer>>) & RateLimitControls {
  let isAccepted = false;
  const middleware = (context: Context, next: Next): Answer | Promise<Awaited<Answer>> => {
    if (!isAccepted && !isContext(context)) throw foreignRequest(takes, context);
    isAccepted = true;
    const wasBegun = isBegun?.(context) === true;
    const outcome = limit.decide(context);
    return "then" in outcome
      ? Promise.resolve(outcome.then((later) => apply(context, next, later, wasBegun)))
      : apply(context, next, outcome, wasBegun);
  };
  return withControls(middleware, limit);
}
