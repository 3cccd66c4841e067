import type { Decision } from "../decide/decision.js";
import { foreignRequest } from "../requests/foreign-request.js";
import { decisionOf } from "../requests/request-context.js";
import { type HeaderTarget, setHeaders } from "../responses/headers.js";
import { HeldRequests } from "../responses/held-requests.js";
import type { Outcome } from "../responses/outcome.js";
import type { NodeResponse } from "../responses/response-end.js";
import { FloodgateError } from "../support/errors.js";
import { functionOrNothing } from "../support/options.js";
import { type RateLimitControls, withControls } from "./controls.js";
import { decideRequest, type Next, passInTurn, runOnLimited } from "./node-request.js";
import type { RateLimit } from "./rate-limit.js";

/** The used part of a response of Node, HTTP/1 or HTTP/2. */
export interface NodeAnswer extends NodeResponse, HeaderTarget {
  statusCode: number;
  end(body: string): unknown;
}

/** What a framework with Node's requests and responses, such as Express, adds to them. */
export interface NodeFramework<Req, Res> {
  /** What the middleware takes, for an error: `"a request of Express"`. */
  readonly takes: string;
  /** Whether a value is a request of this framework. Asked until the first one that is. */
  isRequest(value: Req): boolean;
  /**
   * Makes requests show their decision by a getter of their prototype, which it returns; undefined if only this request has it. Default: the
   * decision is set on each request, which costs more where requests have many properties.
   */
  readonly showDecision?: (request: Req, name: string) => object | undefined;
  /** The adapter's option. The status and the headers are set before it runs. */
  readonly onLimited: ((request: Req, response: Res, decision: Decision | undefined) => unknown) | undefined;
}

/**
 * Makes a middleware of the form `(request, response, next)`. The decision becomes a property of the request, named `decisionName`.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if `onLimited` is not a function.
 */
export function nodeMiddleware<Req extends object, Res extends NodeAnswer>(
  limit: RateLimit<Req>,
  { takes, isRequest, showDecision, onLimited }: NodeFramework<Req, Res>,
): ((request: Req, response: Res, next: Next) => void) & RateLimitControls {
  functionOrNothing("rateLimit", "onLimited", onLimited, '(req, res) => res.end("Slow down")');
  const waiting = new HeldRequests();

  const apply = (request: Req, response: Res, next: Next, outcome: Outcome): void => {
    if (showDecision === undefined && outcome.decision !== undefined)
      (request as { [name: string]: unknown })[limit.decisionName] = outcome.decision;
    setHeaders(response, outcome.headers);
    if (outcome.action === "reject") {
      // Somebody, such as a timeout, answered while functions of the request were pending.
      if (response.headersSent) return;
      response.statusCode = outcome.status;
      if (onLimited === undefined) sendBody(response, outcome);
      else {
        const handler = () => onLimited(request, response, outcome.decision);
        runOnLimited(handler, next, () => finish(response, outcome, onLimited.length > 1, waiting));
      }
      return;
    }
    passInTurn(response, outcome, waiting, next);
  };

  let isAccepted = false;
  /** Requests with this prototype show their decision. */
  let known: object | undefined;
  const middleware = (request: Req, response: Res, next: Next): void => {
    try {
      if (!isAccepted) {
        if (!isRequest(request)) throw foreignRequest(takes, request);
        if (showDecision === undefined) checkDecisionName(request, limit.decisionName);
        isAccepted = true;
      }
      if (showDecision !== undefined && (known === undefined || Object.getPrototypeOf(request) !== known))
        known = showDecision(request, limit.decisionName);
    } catch (error) {
      // Koa passes none, and Hono's and Koa's is the second parameter.
      if (typeof next !== "function") throw error;
      next(error);
      return;
    }
    decideRequest(limit, request, response, next, apply);
  };
  return withControls(middleware, limit, waiting);
}

/**
 * Checks that requests have no property of the app's with the name of a decision. Other libraries set `rateLimit` too, so that name is free.
 * @throws FloodgateError `FLOODGATE_CONFLICTING_OPTIONS` if they have.
 */
export function checkDecisionName(request: object, name: string): void {
  if (!(name in request) || name === "rateLimit" || decisionOf(request, name) !== undefined) return;
  throw new FloodgateError(
    "FLOODGATE_CONFLICTING_OPTIONS",
    `rateLimit: \`decisionName\` is ${JSON.stringify(name)}, but requests have a property of that name already. Choose another, such as decisionName: "quota".`,
  );
}

function sendBody(response: NodeAnswer, { status, body }: Outcome): void {
  response.statusCode = status;
  response.setHeader("Content-Type", body.contentType);
  response.end(body.text);
}

/** Makes sure that a rejected request is answered, whatever `onLimited` did. */
function finish(response: NodeAnswer, outcome: Outcome, takesResponse: boolean, waiting: HeldRequests): void {
  if (response.headersSent || response.writableEnded) return;
  if (!takesResponse) {
    sendBody(response, outcome);
    return;
  }
  waiting.answerInTime(response, () => sendBody(response, outcome));
}
