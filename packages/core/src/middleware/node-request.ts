import type { HeldRequests } from "../responses/held-requests.js";
import type { Outcome } from "../responses/outcome.js";
import { type NodeResponse, whenEnded } from "../responses/response-end.js";
import { withFaults } from "../support/errors.js";
import { isPromise } from "../support/promises.js";
import type { RateLimit } from "./rate-limit.js";

// The steps of a request of Node, for middlewares that call `next`.

// biome-ignore lint/suspicious/noExplicitAny: frameworks type errors differently
export type Next = (error?: any) => void;

/** Decides a request of Node, and applies what was decided. Errors go to `next`. */
export function decideRequest<Req, Res>(
  limit: RateLimit<Req>,
  request: Req,
  response: Res,
  next: Next,
  apply: (request: Req, response: Res, next: Next, outcome: Outcome) => void,
): void {
  let outcome: ReturnType<typeof limit.decide>;
  try {
    outcome = limit.decide(request);
  } catch (error) {
    next(error);
    return;
  }
  if ("then" in outcome) outcome.then((later) => apply(request, response, next, later)).then(undefined, next);
  else apply(request, response, next, outcome);
}

/** Lets a request pass at its turn, unless its client disconnects before. Refunds or settles it when its response is over. */
export function passInTurn(response: NodeResponse, { delayMs, afterResponse }: Outcome, waiting: HeldRequests, next: () => void): void {
  if (afterResponse !== undefined) whenEnded(response, afterResponse);
  if (delayMs === 0) next();
  else whenEnded(response, waiting.hold(delayMs, next));
}

/** Runs `onLimited`, and then `done` with its answer. Errors go to `next`. */
export function runOnLimited(handler: () => unknown, next: Next, done: (answered: unknown) => void): void {
  try {
    const answered = withFaults(handler);
    if (isPromise(answered)) answered.then(done).then(undefined, next);
    else done(answered);
  } catch (error) {
    next(error);
  }
}
