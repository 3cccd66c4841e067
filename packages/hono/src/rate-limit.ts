import type { Decision } from "@floodgate/core";
import {
  type Afterwards,
  answeredBy,
  clientClosedRequest,
  contextMiddleware,
  dropBody,
  type Header,
  type HeldRequests,
  type Outcome,
  outgoingOf,
  type Promised,
  RateLimit,
  type RateLimitControls,
  type RateLimitOptions,
  turnOf,
  WebResponseEnd,
  withHeaders,
} from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import type { Context, Env, MiddlewareHandler, Next } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { honoReader } from "./request.js";

/** The context variable of a limit, for the `Variables` of an app. */
export type RateLimitVariables<Name extends string = "rateLimit"> = {
  /** The decision of the last rate limit of this request; undefined if none applied. */
  [Variable in Name]: Decision | undefined;
};

declare module "hono" {
  interface ContextVariableMap extends RateLimitVariables {}
}

/** If it returns undefined, the usual body is sent. */
type OnLimited<E extends Env> = (c: Context<E>, decision: Decision | undefined) => Promised<Response | undefined>;

export interface HonoRateLimitOptions<E extends Env, Own extends string = never, Name extends string = "rateLimit">
  extends RateLimitOptions<Context<E>, Own> {
  /**
   * Answers a rejected request in place of the problem+json body. The headers and the status (429) are set already. It returns a response, or
   * throws an `HTTPException` for the app's error handling. A `new Response()` needs its status: without one it is a 200.
   */
  onLimited?: OnLimited<E>;
  /** The name of the context variable with the decision. Default `"rateLimit"`. */
  decisionName?: Name;
}

/** Hono middleware with its controls. Handlers after it know its context variable. */
export interface RateLimitMiddleware<Name extends string = "rateLimit">
  extends MiddlewareHandler<{ Variables: RateLimitVariables<Name> }>,
    RateLimitControls {}

/** What a middleware may return. Hono's own type does not allow a response without a promise. */
type Answer = Response | ReturnType<MiddlewareHandler>;

/**
 * Makes a Hono middleware that limits requests: by default per client IP, in memory.
 *
 *     app.use(rateLimit({ limit: 100, window: "1m" }));
 *
 * @throws FloodgateError if an option is invalid: when called, not at a request.
 */
export function rateLimit<
  // biome-ignore lint/suspicious/noExplicitAny: any environment of an app
  E extends Env = any,
  // TypeScript infers no names if a call gives the environment's type, so any name is accepted there.
  const Own extends string = [Env] extends [E] ? never : string,
  const Name extends string = "rateLimit",
>(options: HonoRateLimitOptions<E, Own, Name>): RateLimitMiddleware<Name> {
  const limit = new RateLimit<Context<E>>("rateLimit", options, ["onLimited"], honoReader, memoryStore);
  const { onLimited } = options;
  return contextMiddleware<Context<E>, Next, Answer>(limit, {
    takes: "a context of Hono",
    isContext: (c) => Boolean(c.req?.raw),
    onLimited,
    example,
    apply(c: Context, next, outcome) {
      const { headers, decision, delayMs, afterResponse } = outcome;
      if (decision) c.set(limit.decisionName, decision);
      if (outcome.action === "reject") return onLimited ? limited(c, outcome, onLimited) : answer(c, outcome, headers);
      setHeaders(c, headers);
      const passed = delayMs === 0 ? () => pass(c, next, headers) : () => passInTurn(c, next, outcome, limit.waiting);
      return afterResponse ? passUntilEnd(c, passed, afterResponse) : passed();
    },
  }) as unknown as RateLimitMiddleware<Name>;
}

const example = '(c) => c.text("Slow down")';

/** Sets headers on the context, so that responses of `c.json()` and the like have them from the start. */
function setHeaders(c: Context, headers: readonly Header[]): void {
  for (const { name, value, list } of headers) c.header(name, value, { append: list !== undefined });
}

/** The same, in place of what describes another body. */
function rejectionHeaders(c: Context, headers: readonly Header[]): void {
  dropBody({ getHeaderNames: () => [...c.body(null).headers.keys()], removeHeader: (name) => c.header(name) });
  setHeaders(c, headers);
}

/**
 * Adds missing headers to a response. A response that Hono did not make has none of the prepared headers: a `new Response()`, a result of
 * `fetch()`, or a response of a mounted app.
 */
function addHeaders(c: Context, headers: readonly Header[]): void {
  if (!outgoingOf(c.req.raw, c.env)?.headersSent) replaceResponse(c, withHeaders(c.res, headers, true));
}

function replaceResponse(c: Context, response: Response | undefined): void {
  if (!response || response === c.res) return;
  // Else Hono would add the headers of the old one.
  c.res = undefined;
  c.res = response;
}

/** Lets a request pass, and calls `sent` once its response was sent. */
function passUntilEnd<T>(c: Context, passed: () => Promise<T>, sent: Afterwards): Promise<T> {
  const end = new WebResponseEnd(c.req.raw, c.env, sent, (work) => executionOf(c)?.waitUntil(work));
  return passed().finally(() => {
    // Without a response, the app's error handling will answer.
    replaceResponse(c, end.watch(c.finalized ? c.res : undefined));
  });
}

/** What makes the runtime wait for work, if it kills unawaited work. */
function executionOf(c: Context): Pick<Context["executionCtx"], "waitUntil"> | undefined {
  try {
    return c.executionCtx;
  } catch {
    // Other runtimes have none, and Hono throws.
    return undefined;
  }
}

function pass(c: Context, next: Next, headers: readonly Header[]): Promise<void> {
  if (headers.length === 0) return next();
  return next().then(() => addHeaders(c, headers));
}

/** Lets a request pass at its turn, unless its client disconnects before. */
async function passInTurn(c: Context, next: Next, { delayMs, headers }: Outcome, waiting: HeldRequests): ReturnType<MiddlewareHandler> {
  const isServed = await turnOf(c.req.raw, c.env, delayMs, waiting);
  return isServed ? pass(c, next, headers) : new Response(null, { status: clientClosedRequest });
}

/** The usual answer to a rejected request. @param headers those that are not set yet. */
function answer(c: Context, { body, status }: Outcome, headers: readonly Header[]): Response {
  const all: Record<string, string> = { "Content-Type": body.contentType };
  // If no middleware has prepared headers, a plain object of them costs half as much.
  if (c.body(null).headers.values().next().done) {
    for (const { name, value } of headers) all[name] = value;
    return new Response(body.text, { status, headers: all });
  }
  rejectionHeaders(c, headers);
  return c.body(body.text, status as ContentfulStatusCode, all);
}

async function limited<E extends Env>(c: Context, outcome: Outcome, onLimited: OnLimited<E>): Promise<Response> {
  rejectionHeaders(c, outcome.headers);
  c.status(outcome.status as ContentfulStatusCode);
  try {
    c.res = (await answeredBy(() => onLimited(c, outcome.decision), example)) ?? answer(c, outcome, []);
  } catch (error) {
    // Error handling copies the headers of the current response, so there must be one.
    void c.res;
    throw error;
  }
  addHeaders(c, outcome.headers);
  return c.res;
}
