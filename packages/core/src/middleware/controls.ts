import type { Limiter } from "../limits/limiter.js";
import type { HeldRequests } from "../responses/held-requests.js";
import type { RateLimit } from "./rate-limit.js";

/** The members of a middleware. */
export interface RateLimitControls {
  /** The limiter of the first rule, or of the only one. */
  readonly limiter: Limiter;
  /** The limiters of all rules in force, by name. */
  readonly limiters: ReadonlyMap<string, Limiter>;
  /**
   * Releases held requests (`leakyBucket`) at once, stops following a source of rules, and gives the names of its limits back to the store.
   * The last rules stay active. The store and the source stay open, because they may be shared.
   */
  close(): void;
}

/** Adds the members to a middleware. They are getters, because the rules may change. */
export function withControls<Middleware extends object, Req>(
  middleware: Middleware,
  limit: RateLimit<Req>,
  waiting: HeldRequests,
): Middleware & RateLimitControls {
  const close = (): void => {
    waiting.release();
    limit.close();
  };
  return Object.defineProperties(middleware, {
    limiter: { get: () => limit.version.limiters.values().next().value, enumerable: true },
    limiters: { get: () => limit.version.limiters, enumerable: true },
    close: { value: close, enumerable: true },
  }) as Middleware & RateLimitControls;
}
