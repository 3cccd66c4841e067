import {
  type Decision,
  functionOrNothing,
  isPromise,
  type NodeResponse,
  type Outcome,
  problemType,
  RateLimit,
  type RateLimitControls,
  type RateLimitOptions,
  Waiting,
  whenEnded,
  withControls,
  withFaults,
} from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { showDecision } from "./prototype.js";
import { type ExpressMessage, type ExpressRequest, expressReader } from "./request.js";

/** What is used of a response. */
export interface ExpressResponse extends NodeResponse {
  statusCode: number;
  readonly headersSent: boolean;
  getHeader(name: string): number | string | string[] | undefined;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

export interface ExpressRateLimitOptions<Req extends ExpressRequest, Res extends ExpressResponse, Own extends string = never>
  extends RateLimitOptions<Req, Own> {
  /** Answers a rejected request, whose headers and status (429) are set, in place of the problem+json body. */
  onLimited?: (request: Req, response: Res, decision: Decision | undefined) => unknown;
}

/** Express middleware, with what is needed beside it. */
export interface RateLimitMiddleware extends RateLimitControls {
  (request: ExpressMessage, response: ExpressResponse, next: (error?: unknown) => void): void;
}

/**
 * Limits the requests that pass, per client IP and in memory unless the options say otherwise.
 * @throws FloodgateError where an option is wrong: now, never at a request.
 */
export function rateLimit<
  Req extends ExpressRequest = ExpressRequest,
  // biome-ignore lint/suspicious/noExplicitAny: the response type of the app's own Express version, whichever it is
  Res extends ExpressResponse = any,
  // From a call that says the request's type TypeScript infers no names: any will do there.
  const Own extends string = [ExpressRequest] extends [Req] ? never : string,
>(options: ExpressRateLimitOptions<Req, Res, Own>): RateLimitMiddleware {
  const { onLimited } = options ?? {};
  const limit = new RateLimit<Req>("rateLimit", options, ["onLimited"], expressReader, (onEvent) => memoryStore(onEvent && { onEvent }));
  functionOrNothing("rateLimit", "onLimited", onLimited, '(req, res) => res.send("Slow down")');
  const waiting = new Waiting();

  const apply = (request: ExpressMessage, response: ExpressResponse, next: (error?: unknown) => void, outcome: Outcome): void => {
    showDecision(request, limit.decisionName);
    if (!response.headersSent) setHeaders(response, outcome);
    if (outcome.action === "reject") {
      // Somebody answered while functions of the request were waited for: a timeout, say.
      if (response.headersSent) return;
      response.statusCode = outcome.status;
      if (onLimited !== undefined) answer(() => onLimited(request as Req, response as Res, outcome.decision), next);
      else {
        response.setHeader("Content-Type", problemType);
        response.end(outcome.body);
      }
      return;
    }
    const { delayMs, sent } = outcome;
    if (sent !== undefined) whenEnded(response, sent);
    if (delayMs === 0) next();
    else whenEnded(response, waiting.hold(delayMs, next));
  };

  const middleware = (request: ExpressMessage, response: ExpressResponse, next: (error?: unknown) => void): void => {
    let outcome: ReturnType<typeof limit.decide>;
    try {
      outcome = limit.decide(request as Req);
    } catch (error) {
      next(error);
      return;
    }
    if (isPromise(outcome)) outcome.then((later) => apply(request, response, next, later)).then(undefined, next);
    else apply(request, response, next, outcome);
  };
  return withControls(middleware, limit, waiting);
}

function setHeaders(response: ExpressResponse, outcome: Outcome): void {
  for (const { name, value, list } of outcome.headers) {
    const before = list ? response.getHeader(name) : undefined;
    response.setHeader(name, before === undefined ? value : `${before}, ${value}`);
  }
}

/** Runs a handler of the user's, whose fault, now or later, is the framework's to handle. */
function answer(handler: () => unknown, next: (error?: unknown) => void): void {
  try {
    const result = withFaults(handler);
    if (isPromise(result)) result.then(undefined, next);
  } catch (error) {
    next(error);
  }
}
