import { afterReading, startTimer, steadyMs, stopTimer } from "../support/runtime.js";
import { runningMs, tick, tickMs, unwatch, watch } from "./running-clock.js";

/** Somebody who waits no longer than this. */
export interface Waiter {
  /** By the running clock (`runningMs`), which stands still while the event loop does not run. It may become later. */
  readonly deadlineMs: number;
  /** By the steady clock: whatever the event loop does, nobody waits longer (`latestMs`). */
  readonly latestMs: number;
  /** Where it waits; kept by `Deadlines`. */
  place: number;
  /** Is called once, when the deadline has passed. */
  expire(): void;
}

/** How much longer than its timeout anyone waits, however long the event loop did not run. */
const mostExtraMs = 10_000;

/** The hard deadline of a wait of `timeoutMs` that begins now, by the steady clock. */
export function latestMs(timeoutMs: number, nowMs: number = steadyMs()): number {
  return nowMs + timeoutMs + mostExtraMs;
}

/** How long a waiter still waits, in milliseconds, if the event loop keeps running. */
export function msLeft(waiter: Waiter, nowMs: number = steadyMs()): number {
  return Math.min(waiter.deadlineMs - runningMs(nowMs), waiter.latestMs - nowMs);
}

/**
 * Waiters and one timer for all of them: one each would cost as much as the decisions that they wait for. They stand in an array, each
 * knowing its place: the tables that a Set leaves behind as it grows keep what it held alive until the next full collection.
 * Replies that have arrived are read before a waiter expires.
 */
export class Deadlines {
  readonly #waiting: Waiter[] = [];
  #timer: unknown;
  /** When the timer fires, by the steady clock; infinite where none runs. */
  #firesMs = Number.POSITIVE_INFINITY;
  /** No deadline is before these: by the running clock, and by the steady one. */
  #dueMs = Number.POSITIVE_INFINITY;
  #latestMs = Number.POSITIVE_INFINITY;

  add(waiter: Waiter): void {
    waiter.place = this.#waiting.push(waiter) - 1;
    if (waiter.latestMs < this.#latestMs) this.#latestMs = waiter.latestMs;
    if (waiter.deadlineMs < this.#dueMs) this.#dueMs = waiter.deadlineMs;
    else if (this.#firesMs < Number.POSITIVE_INFINITY) return;
    this.#arm();
  }

  /** Has no more to wait for. The timer may fire for nothing: to stop it each time would cost more. */
  delete(waiter: Waiter): void {
    if (!this.#waits(waiter)) return;
    const last = this.#waiting.at(-1) as Waiter;
    this.#waiting[waiter.place] = last;
    last.place = waiter.place;
    this.#waiting.pop();
  }

  #waits(waiter: Waiter): boolean {
    return this.#waiting[waiter.place] === waiter;
  }

  #arm(): void {
    const nowMs = steadyMs();
    const inMs = Math.max(0, Math.ceil(Math.min(tickMs, this.#dueMs - runningMs(nowMs))));
    if (nowMs + inMs >= this.#firesMs) return;
    if (this.#firesMs === Number.POSITIVE_INFINITY) watch();
    else stopTimer(this.#timer);
    this.#firesMs = nowMs + inMs;
    this.#timer = startTimer(() => this.#tick(), inMs);
  }

  #tick(): void {
    tick();
    const nowMs = steadyMs();
    const nowRunningMs = runningMs(nowMs);
    const over = nowRunningMs >= this.#dueMs || nowMs >= this.#latestMs ? this.#over(nowRunningMs, nowMs) : [];
    if (over.length > 0) afterReading(() => this.#giveUp(over));
    this.#firesMs = Number.POSITIVE_INFINITY;
    if (this.#waiting.length > over.length) this.#arm();
    unwatch();
  }

  #over(nowRunningMs: number, nowMs: number): Waiter[] {
    this.#dueMs = Number.POSITIVE_INFINITY;
    this.#latestMs = Number.POSITIVE_INFINITY;
    const over: Waiter[] = [];
    for (const waiter of this.#waiting) {
      if (waiter.deadlineMs <= nowRunningMs || waiter.latestMs <= nowMs) {
        over.push(waiter);
      } else {
        if (waiter.deadlineMs < this.#dueMs) this.#dueMs = waiter.deadlineMs;
        if (waiter.latestMs < this.#latestMs) this.#latestMs = waiter.latestMs;
      }
    }
    return over;
  }

  #giveUp(over: readonly Waiter[]): void {
    const expired: Waiter[] = [];
    for (const waiter of over) {
      if (!this.#waits(waiter)) continue;
      this.delete(waiter);
      // A reply that was read may have extended its deadline.
      if (msLeft(waiter) > 0) this.add(waiter);
      else expired.push(waiter);
    }
    for (const waiter of expired) waiter.expire();
  }
}

/** What is left of a time by the running clock, at least 1 ms. */
export function msUntil(deadlineMs: number): number {
  return Math.max(1, deadlineMs - runningMs());
}
