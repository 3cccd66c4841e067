import type { Decision } from "@floodgate/core";
import {
  foreignRequest,
  functionOrNothing,
  type HeaderTarget,
  HeldRequests,
  isPromise,
  type NodeResponse,
  type Outcome,
  RateLimit,
  type RateLimitControls,
  type RateLimitOptions,
  setHeaders,
  whenEnded,
  withControls,
  withFaults,
} from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { showDecision } from "./prototype.js";
import { type ExpressMessage, type ExpressRequest, expressReader } from "./request.js";

/** The used part of a response. */
export interface ExpressResponse extends NodeResponse, HeaderTarget {
  statusCode: number;
  end(body: string): unknown;
}

export interface ExpressRateLimitOptions<Req extends ExpressRequest, Res extends ExpressResponse, Own extends string = never>
  extends RateLimitOptions<Req, Own> {
  /**
   * Answers a rejected request in place of the problem+json body. The headers and the status (429) are set already. A function without the
   * parameter `response` only observes, and the usual body is sent. A function with it must answer within five seconds after it returns
   * (or its promise settles); else the usual body is sent.
   */
  onLimited?: (request: Req, response: Res, decision: Decision | undefined) => unknown;
}

/** Express middleware with its controls. */
export interface RateLimitMiddleware extends RateLimitControls {
  (request: ExpressMessage, response: ExpressResponse, next: (error?: unknown) => void): void;
}

/**
 * Makes an Express middleware that limits requests: by default per client IP, in memory.
 *
 *     app.use(rateLimit({ limit: 100, window: "1m" }));
 *     app.post("/login", rateLimit({ name: "login", policy: slidingWindowLog({ limit: 5, window: "15m" }) }));
 *
 * @throws FloodgateError if an option is invalid: when called, not at a request.
 */
export function rateLimit<
  Req extends ExpressRequest = ExpressRequest,
  // biome-ignore lint/suspicious/noExplicitAny: the response type of the app's Express version
  Res extends ExpressResponse = any,
  // TypeScript infers no names if a call gives the request's type, so any name is accepted there.
  const Own extends string = [ExpressRequest] extends [Req] ? never : string,
>(options: ExpressRateLimitOptions<Req, Res, Own>): RateLimitMiddleware {
  const { onLimited } = options ?? {};
  const limit = new RateLimit<Req>("rateLimit", options, ["onLimited"], expressReader, (onEvent) => memoryStore(onEvent && { onEvent }));
  functionOrNothing("rateLimit", "onLimited", onLimited, '(req, res) => res.send("Slow down")');
  const waiting = new HeldRequests();

  const apply = (request: ExpressMessage, response: ExpressResponse, next: (error?: unknown) => void, outcome: Outcome): void => {
    setHeaders(response, outcome.headers);
    if (outcome.action === "reject") {
      // Somebody, such as a timeout, answered while functions of the request were pending.
      if (response.headersSent) return;
      response.statusCode = outcome.status;
      if (onLimited === undefined) sendBody(response, outcome);
      else {
        const handler = () => onLimited(request as Req, response as Res, outcome.decision);
        answer(handler, next, () => finish(response, outcome, onLimited.length > 1, waiting));
      }
      return;
    }
    const { delayMs, afterResponse } = outcome;
    if (afterResponse !== undefined) whenEnded(response, afterResponse);
    if (delayMs === 0) next();
    else whenEnded(response, waiting.hold(delayMs, next));
  };

  /** Requests with this prototype are Express's, and show their decision. */
  let known: object | undefined;
  const middleware = (request: ExpressMessage, response: ExpressResponse, next: (error?: unknown) => void): void => {
    let outcome: ReturnType<typeof limit.decide>;
    try {
      if (known === undefined || Object.getPrototypeOf(request) !== known) {
        if (typeof request.app?.get !== "function") throw foreignRequest("a request of Express", request);
        known = showDecision(request, limit.decisionName);
      }
      outcome = limit.decide(request as Req);
    } catch (error) {
      // Koa passes none, and Hono's and Koa's is the second parameter.
      if (typeof next !== "function") throw error;
      next(error);
      return;
    }
    if ("then" in outcome) outcome.then((later) => apply(request, response, next, later)).then(undefined, next);
    else apply(request, response, next, outcome);
  };
  return withControls(middleware, limit, waiting);
}

function sendBody(response: ExpressResponse, { status, body }: Outcome): void {
  response.statusCode = status;
  response.setHeader("Content-Type", body.contentType);
  response.end(body.text);
}

/** Runs a handler of the app and then `done`. Errors go to the framework. */
function answer(handler: () => unknown, next: (error?: unknown) => void, done: () => void): void {
  try {
    const result = withFaults(handler);
    if (isPromise(result)) result.then(done).then(undefined, next);
    else done();
  } catch (error) {
    next(error);
  }
}

/** Makes sure that a rejected request is answered, whatever `onLimited` did. */
function finish(response: ExpressResponse, outcome: Outcome, takesResponse: boolean, waiting: HeldRequests): void {
  if (response.headersSent || response.writableEnded) return;
  if (!takesResponse) {
    sendBody(response, outcome);
    return;
  }
  waiting.answerInTime(response, () => sendBody(response, outcome));
}
