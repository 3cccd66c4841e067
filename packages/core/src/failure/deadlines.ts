import { afterReading, startTimer, steadyMs, stopTimer, workEndsWithRequest } from "../support/runtime.js";

/** The end of a wait, in which the event loop is sampled. Before it, all time counts. */
const sampledMs = 50;

/**
 * How often the loop is sampled then. A timer that fires so soon makes each poll of the loop 4 µs dearer, because the kernel sets its clock anew.
 * Most answers come before the loop is sampled.
 */
const sampleMs = 2;

/** How late a timer may be in a loop that is not blocked. */
const slackMs = 2;

/** They share one timer, because a timer for each would cost as much as a decision. They are in no order, and each knows its index. */
const waiting: Waiter[] = [];
let timer: unknown;
/** When the timer fires, by the steady clock; infinite if there is no timer. */
let firesMs = Number.POSITIVE_INFINITY;
/** A lower bound of all deadlines, by `unblockedMs`; infinite if there is no timer. */
let dueMs = Number.POSITIVE_INFINITY;
/** The total time in which the event loop was blocked while something waited. */
let blockedMs = 0;

/**
 * A clock that stops while the event loop is blocked by a handler or a busy machine: from `slackMs` after the timer should have fired. Deadlines
 * use it, because an unread reply in the socket is not a fault of the store. It only stops while something waits.
 */
export function unblockedMs(nowMs: number = steadyMs()): number {
  return Math.min(nowMs, firesMs + slackMs) - blockedMs;
}

/** How much longer than its timeout an operation may wait because the event loop was blocked. */
const maxExtraMs = 10_000;

/** A pending operation with a deadline, `timeoutMs` after it was made, and a promise of its result. It settles once. */
export abstract class Waiter<T = unknown> {
  readonly answer: Promise<T>;
  settled = false;
  /** When it was made, by the steady clock. */
  readonly askedMs: number = steadyMs();
  /** The deadline by `unblockedMs`, which stops while the event loop is blocked. It may be extended. */
  deadlineMs: number;
  /** The hard deadline by the steady clock, which applies even if the event loop is blocked. */
  readonly latestMs: number;
  /** Its index in `waiting`; -1 if it does not wait. Only this file changes it. */
  place: number = -1;
  #resolve!: (value: unknown) => void;
  #reject!: (error: unknown) => void;

  constructor(timeoutMs: number) {
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve as (value: unknown) => void;
      this.#reject = reject;
    });
    this.deadlineMs = unblockedMs(this.askedMs) + timeoutMs;
    this.latestMs = this.askedMs + timeoutMs + maxExtraMs;
  }

  finish(value: T): void {
    this.#settle(this.#resolve, value);
  }

  fail(error: unknown): void {
    this.#settle(this.#reject, error);
  }

  #settle<V>(how: (value: V) => void, value: V): void {
    if (this.settled) return;
    this.settled = true;
    removeWaiter(this);
    how(value);
  }

  /** Called once, after the deadline. It must fail. */
  abstract expire(): void;
}

/** A promise that is waited for. */
class Pending<T> extends Waiter<T> {
  readonly #expired: () => unknown;

  constructor(timeoutMs: number, expired: () => unknown) {
    super(timeoutMs);
    this.#expired = expired;
  }

  expire(): void {
    this.fail(this.#expired());
  }
}

/** Milliseconds until a waiter's deadline, if the event loop is not blocked. */
export function msLeft(waiter: Waiter, nowMs: number = steadyMs()): number {
  return Math.min(waiter.deadlineMs - unblockedMs(nowMs), waiter.latestMs - nowMs);
}

/** Lets a waiter expire at its deadline, unless it is removed before. Replies that have arrived are read first. */
export function addWaiter(waiter: Waiter): void {
  if (workEndsWithRequest) {
    // With a timer of its own request, which no other request could stop. It may fire for nothing.
    waiter.place = 0;
    startTimer(() => giveUp([waiter]), msUntil(waiter.deadlineMs));
    return;
  }
  waiter.place = waiting.push(waiter) - 1;
  if (waiter.askedMs > firesMs + slackMs) {
    // It is late, or will never fire, because a test faked timers.
    stopTimer(timer);
    check();
  } else if (waiter.deadlineMs < dueMs) armFor(waiter.deadlineMs, msLeft(waiter));
}

/** Removes a waiter that is settled, or over, and returns whether it waited. The timer may fire for nothing, which is cheaper than stopping it each time. */
function removeWaiter(waiter: Waiter): boolean {
  const { place } = waiter;
  waiter.place = -1;
  if (place < 0) return false;
  // A Set would leave old tables behind as it grows, which keep their entries alive until a full garbage collection.
  const last = waiting.pop();
  if (last !== undefined && last !== waiter) {
    waiting[place] = last;
    last.place = place;
  }
  return true;
}

/** Waits for a promise for at most `timeoutMs`, then rejects with the error that `expired` makes. */
export function atMost<T>(timeoutMs: number, pending: PromiseLike<T>, expired: () => unknown): Promise<T> {
  const waiter = new Pending<T>(timeoutMs, expired);
  addWaiter(waiter);
  pending.then(
    (value) => waiter.finish(value),
    (error) => waiter.fail(error),
  );
  return waiter.answer;
}

/** Sets the timer for the first deadline, which is `leftMs` away, if it would fire later or not at all. */
function armFor(deadlineMs: number, leftMs: number): void {
  dueMs = deadlineMs;
  const nowMs = steadyMs();
  const inMs = Math.max(0, Math.ceil(leftMs > sampledMs ? leftMs - sampledMs : Math.min(leftMs, sampleMs)));
  if (nowMs + inMs >= firesMs) return;
  if (firesMs < Number.POSITIVE_INFINITY) stopTimer(timer);
  countBlocked(nowMs);
  firesMs = nowMs + inMs;
  timer = startTimer(check, inMs);
}

function countBlocked(nowMs: number): void {
  blockedMs += Math.max(0, nowMs - firesMs - slackMs);
  firesMs = Number.POSITIVE_INFINITY;
}

/** Lets those expire whose deadlines have passed, once what has arrived was read, and waits for the next deadline. */
function check(): void {
  const nowMs = steadyMs();
  countBlocked(nowMs);
  dueMs = Number.POSITIVE_INFINITY;
  const over: Waiter[] = [];
  let first: Waiter | undefined;
  let leastMs = Number.POSITIVE_INFINITY;
  for (const waiter of waiting) {
    const leftMs = msLeft(waiter, nowMs);
    if (leftMs <= 0) over.push(waiter);
    else if (leftMs < leastMs) {
      first = waiter;
      leastMs = leftMs;
    }
  }
  if (first !== undefined) armFor(first.deadlineMs, leastMs);
  if (over.length > 0) afterReading(() => giveUp(over));
}

function giveUp(over: readonly Waiter[]): void {
  const expired: Waiter[] = [];
  for (const waiter of over) {
    if (!removeWaiter(waiter)) continue;
    // Reading a reply may have extended the deadline.
    if (msLeft(waiter) > 0) addWaiter(waiter);
    else expired.push(waiter);
  }
  for (const waiter of expired) waiter.expire();
}

/** Milliseconds until a time of `unblockedMs`, at least 1. */
export function msUntil(deadlineMs: number): number {
  return Math.max(1, deadlineMs - unblockedMs());
}
