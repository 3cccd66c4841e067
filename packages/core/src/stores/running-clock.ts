import { steadyMs } from "../support/runtime.js";

/** How often the event loop is looked at while somebody waits. */
export const tickMs = 2;

/** What one turn of the event loop counts at most. An idle process looks more often than that, so its time counts in full. */
const mostMs = 4;

let watchers = 0;
let seenMs = 0;
/** The time in which the event loop did not run, as far as it was seen. */
let stoodMs = 0;

/**
 * A clock that stands still while the event loop does not run: a handler computes, or the machine is busy. Deadlines are measured by it,
 * because an unread reply in the socket is not a fault of the store. It works only while somebody watches.
 */
export function runningMs(nowMs: number = steadyMs()): number {
  return (watchers === 0 ? nowMs : Math.min(nowMs, seenMs + mostMs)) - stoodMs;
}

/** Watchers call it every `tickMs`. */
export function tick(): void {
  const nowMs = steadyMs();
  if (watchers > 0) stoodMs += Math.max(0, nowMs - seenMs - mostMs);
  seenMs = nowMs;
}

export function watch(): void {
  tick();
  watchers++;
}

export function unwatch(): void {
  tick();
  watchers--;
}
