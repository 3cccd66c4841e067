import { foreignRequest } from "../requests/foreign-request.js";
import type { Outcome } from "../responses/outcome.js";
import { functionOrNothing } from "../support/options.js";
import { type RateLimitControls, withControls } from "./controls.js";
import type { RateLimit } from "./rate-limit.js";

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
