import type { Limiter } from "../limits/limiter.js";
import { foreignRequest } from "../requests/foreign-request.js";
import type { Outcome } from "../responses/outcome.js";
import { functionOrNothing } from "../support/options.js";
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

/** What a framework with a context, such as Koa, adds to its requests. */
export interface ContextFramework<Context, Next, Answer> {
  /** What the middleware takes, for an error: `"a context of Koa"`. */
  readonly takes: string;
  /** Whether a value is a context of this framework. Asked until the first one that is. */
  isContext(value: Context): boolean;
  /** Whether the headers of the response are sent. Default: they are not. */
  isBegun?(context: Context): boolean;
  /** The adapter's option, and an example of it. */
  readonly onLimited: unknown;
  readonly example: string;
  /** Does what the limit has decided. @param wasBegun what `isBegun` has answered before the limit was asked. */
  apply(context: Context, next: Next, outcome: Outcome, wasBegun: boolean): Answer;
}

/**
 * Makes a middleware of the form `(context, next)`.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if `onLimited` is not a function.
 */
export function contextMiddleware<Context, Next, Answer>(
  limit: RateLimit<Context>,
  { takes, isContext, isBegun, onLimited, example, apply }: ContextFramework<Context, Next, Answer>,
): ((context: Context, next: Next) => Answer | Promise<Awaited<Answer>>) & RateLimitControls {
  functionOrNothing("rateLimit", "onLimited", onLimited, example);
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
