import type { BreakerState } from "../events/events.js";
import { steadyMs } from "../support/runtime.js";
import type { OutageReport } from "./outage-report.js";

/** The breaker opens after this many failures in a row, */
const faultsInARow = 5;
const row = 2 ** faultsInARow - 1;

/** or after this many failures among the last calls. */
const mostFaults = 10;
const lastCalls = 2 ** 20 - 1;

/** The pause before a probe. It varies by a quarter, so that many processes do not probe at the same moment. */
const pauseMs = 300;

/** Whether a store may be called, and what came of it. A circuit breaker, or several for a call to several parts of a store. */
export interface Circuit {
  /**
   * Whether a call within `timeoutMs` may go to the store. Returns 0 for no, else the period to pass to `succeeded` or `failed`. The first
   * request after the pause is the probe. If it reports nothing in time, the next request probes.
   */
  admits(timeoutMs: number): number;
  /** Reports that the store answered. */
  succeeded(period: number): void;
  /** Reports that the store failed, or did not answer in time. */
  failed(period: number, error?: unknown): void;
  /** Reports that the call was answered without asking the store. The next request may probe. */
  unused(period: number): void;
}

/** A circuit breaker: stops calling a store, or a part of it, that fails, so that requests do not wait for it, and probes for its return. */
export class Breaker implements Circuit {
  #state: BreakerState = "closed";
  /** Incremented with each change. The outcome of a call from an earlier period is ignored. */
  #period = 1;
  /** The last twenty calls as bits, the newest lowest: 1 for a failure. */
  #outcomes = 0;
  #probeAtMs = 0;
  readonly part: string;
  readonly #report: OutageReport;

  /** @param part the part of the store; "" for the whole store. */
  constructor(part: string, report: OutageReport) {
    this.part = part;
    this.#report = report;
  }

  get state(): BreakerState {
    return this.#state;
  }

  /** Milliseconds until the next probe, at least 1; 0 if the breaker is closed. */
  get waitMs(): number {
    return this.#state === "closed" ? 0 : Math.max(1, Math.ceil(this.#probeAtMs - steadyMs()));
  }

  /** Whether it is closed and no recent call failed. */
  get isIdle(): boolean {
    return this.#state === "closed" && this.#outcomes === 0;
  }

  /** Whether it admits no call now. */
  get refuses(): boolean {
    return this.#state !== "closed" && steadyMs() < this.#probeAtMs;
  }

  /** How long nobody has probed it although it may be probed, in milliseconds. */
  get unaskedMs(): number {
    return this.#state === "closed" ? 0 : steadyMs() - this.#probeAtMs;
  }

  /** Closes it, because its part has left the store. */
  leave(): void {
    if (this.#state !== "closed") this.#become("closed");
  }

  admits(timeoutMs: number): number {
    if (this.#state === "closed") return this.#period;
    if (this.refuses) return 0;
    this.#probeAtMs = steadyMs() + timeoutMs + pauseMs;
    this.#become("half-open");
    return this.#period;
  }

  succeeded(period: number): void {
    if (period !== this.#period) return;
    this.#outcomes = (this.#outcomes << 1) & lastCalls;
    if (this.#state !== "closed") this.#become("closed");
  }

  failed(period: number, error?: unknown): void {
    if (period !== this.#period) return;
    this.#outcomes = ((this.#outcomes << 1) | 1) & lastCalls;
    if (this.#state === "closed" && (this.#outcomes & row) !== row && bits(this.#outcomes) < mostFaults) return;
    this.#probeAtMs = steadyMs() + pauseMs * (0.75 + Math.random() / 2);
    this.#become("open", error);
  }

  unused(period: number): void {
    if (period === this.#period && this.#state === "half-open") this.#probeAtMs = steadyMs();
  }

  #become(state: BreakerState, error?: unknown): void {
    this.#period++;
    this.#outcomes = 0;
    if (state === this.#state) return;
    this.#state = state;
    this.#report.tell(this.part, state, error);
  }
}

/** How many bits of a number are 1. */
function bits(number: number): number {
  let count = 0;
  for (let left = number; left !== 0; left &= left - 1) count++;
  return count;
}
