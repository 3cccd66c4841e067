import type { Decision } from "@floodgate/core";
import { type NodeAnswer, nodeMiddleware, RateLimit, type RateLimitControls, type RateLimitOptions } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { type ExpressMessage, type ExpressRequest, expressReader, showDecision } from "./request.js";

/** The used part of a response. */
export type ExpressResponse = NodeAnswer;

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
  const limit = new RateLimit<Req>("rateLimit", options, ["onLimited"], expressReader, memoryStore);
  const isRequest = (request: Req): boolean => typeof request.app?.get === "function";
  return nodeMiddleware<Req, Res>(limit, {
    takes: "a request of Express",
    isRequest,
    showDecision,
    onLimited: options.onLimited,
  }) as RateLimitMiddleware;
}
