import type { Limiter } from "../limits/limiter.js";
import type { Waiting } from "../responses/waiting.js";
import type { RateLimit } from "./rate-limit.js";

/** What a middleware carries, to be used beside it. */
export interface RateLimitControls {
  /** The limiter of the only rule, or of the first. */
  readonly limiter: Limiter;
  /** The limiters of all rules in force, by name. */
  readonly limiters: ReadonlyMap<string, Limiter>;
  /**
   * Lets go at once the requests that are held (`leakyBucket`), leaves the source of its rules, of which the last stay in force, and
   * gives their names back to the store. The store and the source stay as they are: they may be shared.
   */
  close(): void;
}

/** The middleware itself, with its controls: rules may change, so they are looked up when they are asked for. */
export function withControls<Middleware extends object, Req>(
  middleware: Middleware,
  limit: RateLimit<Req>,
  waiting: Waiting,
): Middleware & RateLimitControls {
  const close = (): void => {
    waiting.release();
    limit.close();
  };
  return Object.defineProperties(middleware, {
    limiter: { get: () => limit.limiters.values().next().value, enumerable: true },
    limiters: { get: () => limit.limiters, enumerable: true },
    close: { value: close, enumerable: true },
  }) as Middleware & RateLimitControls;
}
