import { foreignRequest } from "../requests/foreign-request.js";
import { HeldRequests } from "../responses/held-requests.js";
import type { Outcome } from "../responses/outcome.js";
import { type RateLimitControls, withControls } from "./controls.js";
import type { RateLimit } from "./rate-limit.js";

/**
 * Makes a middleware of the form `(context, next)`.
 * @param takes what it takes, for an error: `"a context of Hono"`.
 * @param isContext whether a value is a context of the framework. Asked until the first one that is.
 * @param apply does what the limit has decided.
 */
export function contextMiddleware<Context, Next, Answer>(
  limit: RateLimit<Context>,
  takes: string,
  isContext: (value: Context) => boolean,
  apply: (context: Context, next: Next, outcome: Outcome, waiting: HeldRequests) => Answer,
): ((context: Context, next: Next) => Answer | Promise<Awaited<Answer>>) & RateLimitControls {
  const waiting = new HeldRequests();
  let isAccepted = false;
  const middleware = (context: Context, next: Next): Answer | Promise<Awaited<Answer>> => {
    if (!isAccepted && !isContext(context)) throw foreignRequest(takes, context);
    isAccepted = true;
    const outcome = limit.decide(context);
    return "then" in outcome
      ? Promise.resolve(outcome.then((later) => apply(context, next, later, waiting)))
      : apply(context, next, outcome, waiting);
  };
  return withControls(middleware, limit, waiting);
}
