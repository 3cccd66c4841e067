import { steadyMs } from "../support/runtime.js";

/** How often the event loop is checked while there are watchers. */
export const tickMs = 2;

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
export function tick(): void {
  const nowMs = steadyMs();
  if (watchers > 0) blockedMs += Math.max(0, nowMs - tickedMs - maxTurnMs);
  tickedMs = nowMs;
}

export function watch(): void {
  tick();
  watchers++;
}

export function unwatch(): void {
  tick();
  watchers--;
}
