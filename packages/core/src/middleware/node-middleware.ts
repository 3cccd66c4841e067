import type { Decision } from "../decide/decision.js";
import { leaveSlots } from "../limits/slots.js";
import { foreignRequest } from "../requests/foreign-request.js";
import { decisionOf } from "../requests/request-context.js";
import type { Header } from "../responses/headers.js";
import type { HeldRequests } from "../responses/held-requests.js";
import type { Outcome } from "../responses/outcome.js";
import { clientClosedRequest, hasNoConnection, type NodeResponse, whenEnded } from "../responses/response-end.js";
import { conflict, withFaults } from "../support/errors.js";
import { functionOrNothing } from "../support/options.js";
import { andThen, isPromise, type Promised } from "../support/promises.js";
import { warnOnce } from "../support/warn.js";
import { type RateLimitControls, withControls } from "./controls.js";
import type { RateLimit } from "./rate-limit.js";

// biome-ignore lint/suspicious/noExplicitAny: frameworks type errors differently
export type Next = (error?: any) => void;

/** The used part of a response of Node, HTTP/1 or HTTP/2. */
export interface NodeAnswer extends NodeResponse, HeaderTarget {
  end(body: string): unknown;
}

/** A response of which it is known whether its headers are sent. */
export type NodeAnswered = NodeResponse & Pick<HeaderTarget, "headersSent">;

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
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if `onLimited` is not a function; `FLOODGATE_CONFLICTING_OPTIONS` if `decisionName` is the
 * name of something that requests have.
 */
export function nodeMiddleware<Req extends object, Res extends NodeAnswer>(
  limit: RateLimit<Req>,
  { takes, isRequest, showDecision, onLimited }: NodeFramework<Req, Res>,
): ((request: Req, response: Res, next: Next) => void) & RateLimitControls {
  functionOrNothing("rateLimit", "onLimited", onLimited, '(req, res) => res.end("Slow down")');
  checkDecisionName(limit.decisionName);
  const apply = (request: Req, response: Res, next: Next, outcome: Outcome): void => {
    if (showDecision === undefined && outcome.decision !== undefined)
      (request as { [name: string]: unknown })[limit.decisionName] = outcome.decision;
    setHeaders(response, outcome.headers);
    if (outcome.action === "reject") {
      const send = (): void => {
        response.statusCode = outcome.status;
        response.setHeader("Content-Type", outcome.body.contentType);
        response.end(outcome.body.text);
      };
      response.statusCode = outcome.status;
      if (onLimited === undefined) send();
      else {
        const handler = () => onLimited(request, response, outcome.decision);
        runOnLimited(handler, next, () => ensureAnswer(response, onLimited, limit.waiting, send));
      }
    } else passInTurn(response, outcome, limit.waiting, next);
  };

  let isAccepted = false;
  /** Requests with this prototype show their decision. */
  let known: object | undefined;
  const middleware = (request: Req, response: Res, next: Next): void => {
    try {
      if (!isAccepted) {
        if (!isRequest(request)) throw foreignRequest(takes, request);
        functionOrNothing("rateLimit", "next", next ?? null, "limit(req, res, (error) => ...)");
        if (showDecision === undefined) checkDecisionName(limit.decisionName, request);
        isAccepted = true;
      }
      if (showDecision !== undefined && Object.getPrototypeOf(request) !== known) known = showDecision(request, limit.decisionName);
    } catch (error) {
      // Koa passes none, and Hono's and Koa's is the second parameter.
      if (typeof next !== "function") throw error;
      next(error);
      return;
    }
    decideRequest(limit, request, response, next, apply);
  };
  return withControls(middleware, limit);
}

/** Properties that requests have in Node and in frameworks on it, or get from usual middlewares. */
const usual = (): object =>
  Object.fromEntries(
    "app baseUrl body headers id ip method originalUrl params path query raw req res route session socket url user"
      .split(" ")
      .map((name) => [name, true]),
  );

/**
 * Checks that requests have no property with the name of a decision. Other libraries set `rateLimit` too, so that name is free.
 * @param request a request of the app. Default: one with the usual properties, for options when they are given.
 * @throws FloodgateError `FLOODGATE_CONFLICTING_OPTIONS` if they have.
 */
export function checkDecisionName(name: string, request: object = usual()): void {
  if (!(name in request) || name === "rateLimit" || decisionOf(request, name) !== undefined) return;
  throw conflict(
    `rateLimit: \`decisionName\` is ${JSON.stringify(name)}, but requests have a property of that name already. Choose another, such as decisionName: "quota".`,
    ["decisionName"],
  );
}

/**
 * Whether a response can still become a rejection: its headers are not sent. If they were sent before the limit was asked, nobody may end the
 * response, because its handler does not run: it is cut off, as frameworks do after an error. If they were sent since, somebody, such as a
 * timeout, answers.
 * @param wasBegun whether headers were sent when the limit was asked.
 */
export function canReject(response: NodeAnswered, wasBegun: boolean): boolean {
  if (wasBegun && !response.writableEnded) {
    warnOnce(
      "FLOODGATE_HEADERS_SENT",
      "A request was rejected after an earlier middleware had sent headers, so its connection was cut. Mount the limit before that middleware.",
    );
    if (response.stream !== undefined) response.stream.close(cancelled);
    else if (hasNoConnection(response)) response.end?.("");
    else response.destroy?.();
  }
  return !response.headersSent;
}

/** CANCEL of HTTP/2. With other codes, Node reports an error to the app. */
const cancelled = 8;

/** How long `onLimited` may take to answer after it returned: it may render a template or open a file. */
const answerMs = 5000;

/**
 * Sends the usual answer of a rejected request, unless `onLimited`, which has returned, answers it within five seconds. Without a parameter for
 * the response, it only observes.
 */
export function ensureAnswer(
  response: NodeAnswered,
  onLimited: { readonly length: number } | undefined,
  waiting: HeldRequests,
  send: () => unknown,
): void {
  const isAnswered = (): boolean => response.headersSent || response.writableEnded;
  if (isAnswered()) return;
  if (onLimited === undefined || onLimited.length < 2) {
    send();
    return;
  }
  const answerNow = (): void => {
    if (isAnswered()) return;
    warnOnce(
      "FLOODGATE_UNANSWERED",
      `\`onLimited\` has not answered ${answerMs / 1000} seconds after it returned, so the limit has answered 429. Write onLimited: (req, res) => res.end("Slow down"), or return a promise if it takes longer. To log only, use \`onEvent\`.`,
    );
    send();
  };
  whenEnded(response, waiting.hold(answerMs, answerNow));
}

/** Decides a request of Node, and applies what was decided, unless it is too late to reject it. Errors go to `next`. */
export function decideRequest<Req, Res extends NodeAnswered>(
  limit: RateLimit<Req>,
  request: Req,
  response: Res,
  next: Next,
  apply: (request: Req, response: Res, next: Next, outcome: Outcome) => void,
): void {
  const wasBegun = response.headersSent;
  let outcome: ReturnType<typeof limit.decide>;
  try {
    outcome = limit.decide(request);
  } catch (error) {
    next(error);
    return;
  }
  if ("then" in outcome) {
    outcome
      .then((later) => {
        if (later.action === "pass" || canReject(response, wasBegun)) apply(request, response, next, later);
      })
      .then(undefined, next);
  } else if (outcome.action === "pass" || !response.headersSent || canReject(response, wasBegun)) apply(request, response, next, outcome);
}

/**
 * Lets a request pass at its turn, unless its client disconnects before. Refunds or settles it when its response is over.
 * @param response undefined if the request has none, such as a message. Nobody knows then when it is over, and slots of `concurrency` come
 * back after their `hold`.
 * @param pass lets it pass.
 * @param leave what to do if the client disconnects before. Without it, the promise of a held request then never settles. Nobody receives
 * the status 499, but loggers see it.
 * @returns what `pass` or `leave` returns; a promise of it if the request is held.
 */
export function passInTurn<T>(
  response: NodeAnswered | undefined,
  { delayMs, decisions, afterResponse }: Outcome,
  waiting: HeldRequests,
  pass: () => T,
  leave?: () => T,
): T | Promise<Awaited<T>> {
  if (response === undefined) leaveSlots(decisions);
  else if (afterResponse !== undefined) whenEnded(response, afterResponse);
  if (delayMs === 0) return pass();
  return new Promise((resolve) => {
    const settle = resolve as (answer: T) => void;
    const cancel = waiting.hold(delayMs, () => settle(pass()));
    if (response === undefined) return;
    whenEnded(response, () => {
      if (!cancel()) return;
      if (!response.headersSent) response.statusCode = clientClosedRequest;
      if (leave !== undefined) settle(leave());
    });
  });
}

/** Runs `onLimited`, if there is one, and then `done` with its answer. What it throws is always an error. */
export function afterOnLimited<T>(handler: (() => unknown) | undefined, done: (answered: unknown) => T): Promised<T> {
  return andThen(handler && withFaults(handler), done);
}

/** The same for frameworks with `next`, which gets the errors. */
export function runOnLimited(handler: () => unknown, next: Next, done: (answered: unknown) => void): void {
  try {
    const answered = afterOnLimited<unknown>(handler, done);
    if (isPromise(answered)) answered.then(undefined, next);
  } catch (error) {
    next(error);
  }
}

/**
 * Headers that describe another body than a rejection's, tell shared caches more than Cache-Control does, or make nginx answer. Not
 * Content-Type, which may be there for `onLimited`, and not Content-Security-Policy.
 */
const ofBody = /^(content-[^ts]|etag|last-m|transfer-|repr-|digest|x-accel-|surrogate-)|cdn-cache/;

/** A response of Node, or a reply of Fastify. Mocks in tests may have no headers to list. */
interface Described {
  getHeaderNames?(): string[];
  getHeaders?(): object;
  removeHeader?(name: string): unknown;
}

/** Removes what an earlier middleware has said of another body than a rejection's. */
export function dropBody(response: Described): void {
  for (const name of response.getHeaderNames?.() ?? Object.keys(response.getHeaders?.() ?? {}))
    if (ofBody.test(name)) response.removeHeader?.(name);
}

/** The used part of Node's response. Typed by structure, because core also runs without Node. */
export interface HeaderTarget extends Described {
  readonly headersSent: boolean;
  getHeader(name: string): number | string | string[] | undefined;
  setHeader(name: string, value: string): unknown;
}

/**
 * Sets headers on Node's response. List items are appended to those of an earlier middleware. Those of a rejection replace what describes
 * another body. Does nothing once headers are sent.
 */
export function setHeaders(response: HeaderTarget, headers: readonly Header[]): void {
  if (response.headersSent) return;
  for (const { name, value, list } of headers) {
    // Only a rejection has it.
    if (name === "Cache-Control") dropBody(response);
    const before = list ? response.getHeader(list) : undefined;
    response.setHeader(name, before === undefined ? value : listed(before, value));
  }
}

/** The value of a list header: the items of earlier middlewares, then those of this one. */
export function listed(before: unknown, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}
