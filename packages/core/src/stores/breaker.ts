import type { BreakerState, EventListener } from "../limits/events.js";
import { listenerOf, tellAll } from "../limits/listeners.js";
import { reasonOf } from "../support/errors.js";
import { steadyMs } from "../support/runtime.js";
import { warn } from "../support/warn.js";
import { type Store, scopeOf } from "./store.js";

/** The breaker opens after this many failures in a row. */
const maxFaults = 5;

/** The pause before a probe. It varies by a quarter, so that many processes do not probe at the same moment. */
const pauseMs = 300;

/** At most one outage per minute is reported on the console. */
const consolePauseMs = 60_000;

/** A circuit breaker: stops calling a store that fails, so that requests do not wait for it, and probes for its return. */
export class Breaker {
  #state: BreakerState = "closed";
  /** Incremented with each change. The outcome of a call from an earlier period is ignored. */
  #period = 1;
  #faults = 0;
  #probeAtMs = 0;
  /** Whether this outage was reported on the console. */
  #isReported = false;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  readonly #listeners = new Set<{ readonly onEvent: EventListener }>();

  get state(): BreakerState {
    return this.#state;
  }

  /** Milliseconds until the next probe, at least 1; 0 if the breaker is closed. */
  get waitMs(): number {
    return this.#state === "closed" ? 0 : Math.max(1, Math.ceil(this.#probeAtMs - steadyMs()));
  }

  /** Sends each change to a listener, once even if the listener was added several times. Returns a function that removes it. */
  listen(onEvent: EventListener): () => void {
    const listening = { onEvent: listenerOf(onEvent) };
    this.#listeners.add(listening);
    return () => void this.#listeners.delete(listening);
  }

  /**
   * Whether a call within `timeoutMs` may go to the store. Returns 0 for no, else the period to pass to `succeeded` or `failed`. The first
   * request after the pause is the probe. If it reports nothing in time, the next request probes.
   */
  admits(timeoutMs: number): number {
    if (this.#state === "closed") return this.#period;
    const nowMs = steadyMs();
    if (nowMs < this.#probeAtMs) return 0;
    this.#probeAtMs = nowMs + timeoutMs + pauseMs;
    this.#become("half-open");
    return this.#period;
  }

  /** Reports that the store answered. */
  succeeded(period: number): void {
    if (period !== this.#period) return;
    this.#faults = 0;
    if (this.#state !== "closed") this.#become("closed");
  }

  /** Reports that the store failed, or did not answer in time. */
  failed(period: number, error?: unknown): void {
    if (period !== this.#period) return;
    if (this.#state === "closed" && ++this.#faults < maxFaults) return;
    this.#probeAtMs = steadyMs() + pauseMs * (0.75 + Math.random() / 2);
    this.#become("open", error);
  }

  #become(state: BreakerState, error?: unknown): void {
    this.#period++;
    if (state === this.#state) return;
    this.#state = state;
    const listeners = new Set([...this.#listeners].map(({ onEvent }) => onEvent));
    tellAll(listeners, { type: "breaker", state });
    if (state === "open" && listeners.size === 0) this.#reportOutage(error);
    if (state === "closed") this.#reportReturn();
  }

  /** Reports an outage once, and at most one outage a minute. A second one within the minute is reported later, if it still lasts. */
  #reportOutage(error: unknown): void {
    const nowMs = steadyMs();
    if (this.#isReported || nowMs - this.#reportedAtMs < consolePauseMs) return;
    this.#isReported = true;
    this.#reportedAtMs = nowMs;
    const fault = error === undefined ? "" : ` The last fault: ${reasonOf(error).why}`;
    warn(
      "FLOODGATE_STORE_DOWN",
      `The store failed ${maxFaults} times in a row, so it is only probed now, until it is back. Each limit applies its \`onStoreError\`; by default, requests pass uncounted. \`onEvent\` reports every fault.${fault}`,
    );
  }

  /** If the outage was reported on the console, its end is too, even if there is a listener by then. */
  #reportReturn(): void {
    if (!this.#isReported) return;
    this.#isReported = false;
    warn("FLOODGATE_STORE_BACK", "The store is back and decides again.");
  }
}

/** One breaker for each store, shared by all its users. */
const breakers = new WeakMap<object, Breaker>();

/** The state of a store's breaker; undefined if nobody has one. */
export function breakerState(store: Store): BreakerState | undefined {
  return breakers.get(scopeOf(store))?.state;
}

export function breakerOf(store: Store): Breaker {
  const scope = scopeOf(store);
  let breaker = breakers.get(scope);
  if (breaker === undefined) {
    breaker = new Breaker();
    breakers.set(scope, breaker);
  }
  return breaker;
}
