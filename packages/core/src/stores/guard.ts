import type { LocalFallback } from "./local-fallback.js";
import type { Mode, Store } from "./store.js";

/** How limiters and middlewares ask a store. */
export interface Guard<M extends Mode = Mode> extends Store<M> {
  readonly scope: object;
  /** How long a decision waits for the store; 0 if the store answers at once. */
  readonly timeoutMs: number;
  /** What decides while the store is away, if it is another store. */
  readonly fallback: LocalFallback | undefined;
  /** Tells the listener about the circuit breaker. Call it after setup: a failed setup would leak it. */
  listen(): void;
  /** Stops telling. */
  close(): void;
  /** Waits for an answer, no longer than this. */
  atMost<T>(timeoutMs: number, pending: PromiseLike<T>): PromiseLike<T>;
}
