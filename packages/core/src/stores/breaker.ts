import { type EventListener, listenerOf } from "../limits/events.js";
import { reasonOf } from "../support/errors.js";
import { steadyMs } from "../support/runtime.js";
import { warn } from "../support/warn.js";
import { type Store, scopeOf } from "./store.js";

/** `closed`: the store is asked. `open`: it is not. `half-open`: one request tries whether it is back. */
export type BreakerState = "closed" | "open" | "half-open";

/** So many faults in a row, and the store counts as dead. */
const mostFaults = 5;

/** The pause before a try, more or less a quarter of it, so that many processes do not try at the same moment. */
const pauseMs = 300;

/** A store that comes and goes must not flood the console. */
const consolePauseMs = 60_000;

/** Stops asking a store that is dead, so that no request waits for it, and notices when it is back. */
export class Breaker {
  #state: BreakerState = "closed";
  /** Counts the changes: what was asked in an earlier period says nothing of this one. */
  #period = 1;
  #faults = 0;
  #tryAtMs = 0;
  /** Whether the console has been told of this outage. */
  #isTold = false;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  readonly #listeners = new Set<{ readonly onEvent: EventListener }>();

  /** Milliseconds until the store is tried again, at least 1; 0 where it is asked. */
  get waitMs(): number {
    return this.#state === "closed" ? 0 : Math.max(1, Math.ceil(this.#tryAtMs - steadyMs()));
  }

  /** Tells of each change from now on, to one listener once however often it is given. Answers how to stop. */
  listen(onEvent: EventListener): () => void {
    const listening = { onEvent: listenerOf(onEvent) };
    this.#listeners.add(listening);
    return () => void this.#listeners.delete(listening);
  }

  /**
   * Whether to ask the store now, for an answer within `timeoutMs`: 0 for no, else the period that the outcome is to be reported
   * with. The first request after the pause is the one that tries; one of which nothing is heard in time has failed.
   */
  admits(timeoutMs: number): number {
    if (this.#state === "closed") return this.#period;
    const nowMs = steadyMs();
    if (nowMs < this.#tryAtMs) return 0;
    this.#tryAtMs = nowMs + timeoutMs + pauseMs;
    this.#become("half-open");
    return this.#period;
  }

  /** The store has answered. */
  succeeded(period: number): void {
    if (period !== this.#period) return;
    this.#faults = 0;
    if (this.#state !== "closed") this.#become("closed");
  }

  /** The store has failed, or has not answered in time. */
  failed(period: number, error?: unknown): void {
    if (period !== this.#period) return;
    if (this.#state === "closed" && ++this.#faults < mostFaults) return;
    this.#tryAtMs = steadyMs() + pauseMs * (0.75 + Math.random() / 2);
    this.#become("open", error);
  }

  #become(state: BreakerState, error?: unknown): void {
    this.#period++;
    if (state === this.#state) return;
    this.#state = state;
    const listeners = new Set([...this.#listeners].map(({ onEvent }) => onEvent));
    for (const onEvent of listeners) onEvent({ type: "breaker", state });
    if (state === "open" && listeners.size === 0) this.#tellOutage(error);
    if (state === "closed") this.#tellReturn();
  }

  /** Tells the console once an outage and at most once a minute. A second outage within the minute is told after it, if it still lasts. */
  #tellOutage(error: unknown): void {
    const nowMs = steadyMs();
    if (this.#isTold || nowMs - this.#toldAtMs < consolePauseMs) return;
    this.#isTold = true;
    this.#toldAtMs = nowMs;
    const fault = error === undefined ? "" : ` The last fault: ${reasonOf(error).why}`;
    warn(
      "FLOODGATE_STORE_DOWN",
      `The store has failed ${mostFaults} times in a row and is not asked for now, except to see whether it is back. Each limit does what its \`onStoreError\` says: without one, requests pass uncounted. \`onEvent\` hears of every fault.${fault}`,
    );
  }

  /** Whoever has read of an outage on the console reads of its end there too, even if somebody listens by then. */
  #tellReturn(): void {
    if (!this.#isTold) return;
    this.#isTold = false;
    warn("FLOODGATE_STORE_BACK", "The store answers again, and is asked again.");
  }
}

/** Of all who ask a store one breaker: what one learns of it the others need not learn again. */
const breakers = new WeakMap<object, Breaker>();

export function breakerOf(store: Store): Breaker {
  const scope = scopeOf(store);
  let breaker = breakers.get(scope);
  if (breaker === undefined) {
    breaker = new Breaker();
    breakers.set(scope, breaker);
  }
  return breaker;
}
