import type { LocalFallback } from "../failure/local-fallback.js";
import type { Mode, Store } from "./store.js";

/** How limiters and middlewares call a store: with a deadline, a circuit breaker and a fallback, or directly. */
export interface Guard<M extends Mode = Mode> extends Store<M> {
  readonly scope: object;
  /** How long a decision waits for the store; 0 if the store answers at once. */
  readonly timeoutMs: number;
  /** The fallback store; undefined without one. */
  readonly fallback: LocalFallback | undefined;
  /** Sends the breaker's events to `onEvent` until `close`. Call it after setup; a failed setup would leak it. */
  listen(): void;
  /** Stops the breaker's events. */
  close(): void;
  /** Waits for a promise, at most `timeoutMs`. */
  atMost<T>(timeoutMs: number, pending: PromiseLike<T>): PromiseLike<T>;
}
