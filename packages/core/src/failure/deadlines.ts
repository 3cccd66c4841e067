import { afterReading, startTimer, steadyMs, stopTimer, workEndsWithRequest } from "../support/runtime.js";

/** How often the event loop is checked while there are watchers. */
const tickMs = 2;

/** The most that one turn of the event loop counts. An idle process ticks more often, so its time counts in full. */
const maxTurnMs = 4;

let watchers = 0;
let tickedMs = 0;
/** The total time in which the event loop was blocked, while there were watchers. */
let blockedMs = 0;

/**
 * A clock that stops while the event loop is blocked by a handler or a busy machine. Deadlines use it, because an unread reply in the
 * socket is not a fault of the store. It only stops while there are watchers.
 */
export function unblockedMs(nowMs: number = steadyMs()): number {
  return (watchers === 0 ? nowMs : Math.min(nowMs, tickedMs + maxTurnMs)) - blockedMs;
}

/** Watchers call it every `tickMs`. */
function tick(): void {
  const nowMs = steadyMs();
  if (watchers > 0) blockedMs += Math.max(0, nowMs - tickedMs - maxTurnMs);
  tickedMs = nowMs;
}

/** A pending operation with a deadline. */
export interface Waiter {
  /** The deadline by the running clock (`unblockedMs`), which stops while the event loop is blocked. It may be extended. */
  readonly deadlineMs: number;
  /** The hard deadline by the steady clock (`latestMs`), which applies even if the event loop is blocked. */
  readonly latestMs: number;
  /** Its index in `Deadlines`, which maintains it; -1 if it is not there. */
  place: number;
  /** Called once, after the deadline. */
  expire(): void;
}

/** The maximum extension of a timeout by time in which the event loop was blocked. */
const maxExtraMs = 10_000;

/** The hard deadline of a wait of `timeoutMs` that begins now, by the steady clock. */
export function latestMs(timeoutMs: number, nowMs: number = steadyMs()): number {
  return nowMs + timeoutMs + maxExtraMs;
}

/** Milliseconds until a waiter's deadline, if the event loop is not blocked. */
export function msLeft(waiter: Waiter, nowMs: number = steadyMs()): number {
  return Math.min(waiter.deadlineMs - unblockedMs(nowMs), waiter.latestMs - nowMs);
}

/**
 * Waiters with one timer for all: a timer each would cost as much as a decision. They are in an array and know their index. A Set would
 * leave old tables behind as it grows, which keep their entries alive until a full garbage collection. Replies that have arrived are
 * read before a waiter expires.
 */
export class Deadlines {
  readonly #waiting: Waiter[] = [];
  #timer: unknown;
  /** When the timer fires, by the steady clock; infinite if there is no timer. */
  #firesMs = Number.POSITIVE_INFINITY;
  /** Lower bounds of all deadlines, by the running clock and by the steady clock. */
  #dueMs = Number.POSITIVE_INFINITY;
  #latestMs = Number.POSITIVE_INFINITY;

  add(waiter: Waiter): void {
    if (workEndsWithRequest) {
      // With a timer of its own request, which no other request could stop. It may fire for nothing.
      waiter.place = 0;
      startTimer(() => this.#giveUp([waiter]), msUntil(waiter.deadlineMs));
      return;
    }
    waiter.place = this.#waiting.push(waiter) - 1;
    if (this.#bound(waiter) || this.#firesMs === Number.POSITIVE_INFINITY) this.#arm();
  }

  /** Removes a waiter, and returns whether it was here. The timer may fire for nothing, which is cheaper than stopping it each time. */
  delete(waiter: Waiter): boolean {
    const { place } = waiter;
    waiter.place = -1;
    if (place < 0) return false;
    const last = this.#waiting.pop();
    if (last !== undefined && last !== waiter) {
      this.#waiting[place] = last;
      last.place = place;
    }
    return true;
  }

  /** Waits for a promise for at most `timeoutMs`, then rejects with the error that `expired` makes. */
  atMost<T>(timeoutMs: number, pending: PromiseLike<T>, expired: () => unknown): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const deadlineMs = unblockedMs() + timeoutMs;
      const waiter = { deadlineMs, latestMs: latestMs(timeoutMs), place: -1, expire: () => reject(expired()) };
      this.add(waiter);
      const settle =
        <V>(how: (value: V) => void) =>
        (value: V) => {
          this.delete(waiter);
          how(value);
        };
      pending.then(settle(resolve), settle(reject));
    });
  }

  /** Lowers the bounds to the deadlines of a waiter. Returns whether its running deadline is the first. */
  #bound({ deadlineMs, latestMs }: Waiter): boolean {
    if (latestMs < this.#latestMs) this.#latestMs = latestMs;
    if (deadlineMs >= this.#dueMs) return false;
    this.#dueMs = deadlineMs;
    return true;
  }

  #arm(): void {
    const nowMs = steadyMs();
    const inMs = Math.max(0, Math.ceil(Math.min(tickMs, this.#dueMs - unblockedMs(nowMs))));
    if (nowMs + inMs >= this.#firesMs) return;
    if (this.#firesMs === Number.POSITIVE_INFINITY) {
      tick();
      watchers++;
    } else stopTimer(this.#timer);
    this.#firesMs = nowMs + inMs;
    this.#timer = startTimer(() => this.#tick(), inMs);
  }

  #tick(): void {
    tick();
    const nowMs = steadyMs();
    let over: Waiter[] = [];
    if (unblockedMs(nowMs) >= this.#dueMs || nowMs >= this.#latestMs) {
      this.#dueMs = this.#latestMs = Number.POSITIVE_INFINITY;
      over = this.#waiting.filter((waiter) => {
        const isOver = msLeft(waiter, nowMs) <= 0;
        if (!isOver) this.#bound(waiter);
        return isOver;
      });
      if (over.length > 0) afterReading(() => this.#giveUp(over));
    }
    this.#firesMs = Number.POSITIVE_INFINITY;
    if (this.#waiting.length > over.length) this.#arm();
    tick();
    watchers--;
  }

  #giveUp(over: readonly Waiter[]): void {
    const expired: Waiter[] = [];
    for (const waiter of over) {
      if (!this.delete(waiter)) continue;
      // Reading a reply may have extended the deadline.
      if (msLeft(waiter) > 0) this.add(waiter);
      else expired.push(waiter);
    }
    for (const waiter of expired) waiter.expire();
  }
}

/** Milliseconds until a time of the running clock, at least 1. */
export function msUntil(deadlineMs: number): number {
  return Math.max(1, deadlineMs - unblockedMs());
}
