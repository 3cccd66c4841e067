import { startTimer, steadyMs, stopTimer } from "../runtime.js";

/** Somebody who waits no longer than this. */
export interface Waiter {
  /** By the steady clock. */
  readonly deadlineMs: number;
  /** Where it waits; kept by `Deadlines`. */
  place: number;
  /** Is called once, when the deadline has passed. */
  expire(): void;
}

/**
 * Waiters and one timer for all of them: one each would cost as much as the decisions that they wait for. They stand in an array, each
 * knowing its place: the tables that a Set leaves behind as it grows keep what it held alive until the next full collection.
 */
export class Deadlines {
  readonly #waiting: Waiter[] = [];
  #timer: unknown;
  /** When the timer fires. */
  #dueMs = Number.POSITIVE_INFINITY;

  add(waiter: Waiter): void {
    waiter.place = this.#waiting.push(waiter) - 1;
    if (waiter.deadlineMs < this.#dueMs) this.#arm(waiter.deadlineMs);
  }

  /** Has no more to wait for. The timer may fire for nothing: to stop it each time would cost more. */
  delete(waiter: Waiter): void {
    const last = this.#waiting.at(-1);
    if (last === undefined || this.#waiting[waiter.place] !== waiter) return;
    this.#waiting[waiter.place] = last;
    last.place = waiter.place;
    this.#waiting.pop();
  }

  #arm(dueMs: number): void {
    stopTimer(this.#timer);
    this.#dueMs = dueMs;
    this.#timer = startTimer(() => this.#expire(), Math.max(0, Math.ceil(dueMs - steadyMs())));
  }

  #expire(): void {
    const nowMs = steadyMs();
    this.#dueMs = Number.POSITIVE_INFINITY;
    let nextMs = Number.POSITIVE_INFINITY;
    const expired: Waiter[] = [];
    for (const waiter of this.#waiting) {
      if (waiter.deadlineMs <= nowMs) expired.push(waiter);
      else if (waiter.deadlineMs < nextMs) nextMs = waiter.deadlineMs;
    }
    for (const waiter of expired) this.delete(waiter);
    if (nextMs < Number.POSITIVE_INFINITY) this.#arm(nextMs);
    for (const waiter of expired) waiter.expire();
  }
}

/** What is left of a time, at least 1 ms. */
export function msUntil(deadlineMs: number): number {
  return Math.max(1, deadlineMs - steadyMs());
}
