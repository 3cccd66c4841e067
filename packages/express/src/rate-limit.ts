import type { Decision } from "@floodgate/core";
import {
  functionOrNothing,
  type HeaderTarget,
  isPromise,
  type NodeResponse,
  type Outcome,
  RateLimit,
  type RateLimitControls,
  type RateLimitOptions,
  setHeaders,
  Waiting,
  warnOnce,
  whenEnded,
  withControls,
  withFaults,
} from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { type ExpressMessage, type ExpressRequest, expressReader } from "./request.js";

/** What is used of a response. */
export interface ExpressResponse extends NodeResponse, HeaderTarget {
  statusCode: number;
  end(body: string): unknown;
}

export interface ExpressRateLimitOptions<Req extends ExpressRequest, Res extends ExpressResponse, Own extends string = never>
  extends RateLimitOptions<Req, Own> {
  /**
   * Answers a rejected request, whose headers and status (429) are set, in place of the problem+json body. A function that takes no
   * response leaves the answer to the limit. One that takes it answers within five seconds after it has returned, or after the
   * promise that it returned has settled; if it does not, the limit answers.
   */
  onLimited?: (request: Req, response: Res, decision: Decision | undefined) => unknown;
}

/** Express middleware, with what is needed beside it. */
export interface RateLimitMiddleware extends RateLimitControls {
  (request: ExpressMessage, response: ExpressResponse, next: (error?: unknown) => void): void;
}

/**
 * Makes an Express middleware that limits requests: by default per client IP, in memory.
 *
 *     app.use(rateLimit({ limit: 100, window: "1m" }));
 *     app.post("/login", rateLimit({ name: "login", limit: 5, window: "15m", key: (req, { ip }) => [ip, req.body.user] }));
 *
 * @throws FloodgateError if an option is invalid: when called, not at a request.
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
    setHeaders(response, outcome.headers);
    if (outcome.action === "reject") {
      // Somebody answered while functions of the request were waited for: a timeout, say.
      if (response.headersSent) return;
      response.statusCode = outcome.status;
      if (onLimited === undefined) sendBody(response, outcome);
      else {
        const handler = () => onLimited(request as Req, response as Res, outcome.decision);
        answer(handler, next, () => finish(response, outcome, onLimited.length > 1, waiting));
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

function sendBody(response: ExpressResponse, { status, body }: Outcome): void {
  response.statusCode = status;
  response.setHeader("Content-Type", body.contentType);
  response.end(body.text);
}

/** Runs a handler of the user's, whose fault, now or later, is the framework's to handle, and then `done`. */
function answer(handler: () => unknown, next: (error?: unknown) => void, done: () => void): void {
  try {
    const result = withFaults(handler);
    if (isPromise(result)) result.then(done).then(undefined, next);
    else done();
  } catch (error) {
    next(error);
  }
}

/** How long `onLimited` may take to answer after it has returned: a template is read, a file is opened. */
const answerMs = 5000;

/** Sees to it that a rejected request is answered, whatever `onLimited` has done. */
function finish(response: ExpressResponse, outcome: Outcome, takesResponse: boolean, waiting: Waiting): void {
  if (response.headersSent || response.writableEnded) return;
  if (!takesResponse) {
    sendBody(response, outcome);
    return;
  }
  const late = (): void => {
    if (response.headersSent || response.writableEnded) return;
    warnOnce(
      "FLOODGATE_UNANSWERED",
      `\`onLimited\` has not answered within ${answerMs / 1000} seconds after it returned, so the limit has answered 429. Write onLimited: (req, res) => res.send("Slow down"). If it takes longer, return a promise that lasts until it has answered. To log only, use \`onEvent\`.`,
    );
    sendBody(response, outcome);
  };
  whenEnded(response, waiting.hold(answerMs, late));
}
