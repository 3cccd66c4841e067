import type { Limiter } from "../limits/limiter.js";

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
export function withControls<Middleware extends object>(
  middleware: Middleware,
  limit: Pick<RateLimitControls, "limiters" | "close">,
): Middleware & RateLimitControls {
  return Object.defineProperties(middleware, {
    limiter: { get: () => limit.limiters.values().next().value, enumerable: true },
    limiters: { get: () => limit.limiters, enumerable: true },
    close: { value: () => limit.close(), enumerable: true },
  }) as Middleware & RateLimitControls;
}
