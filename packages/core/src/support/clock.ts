import { FloodgateError, shown } from "./errors.js";

/** The time in milliseconds since the epoch. */
export type Clock = () => number;

/** Checks a store's clock and makes it return whole milliseconds. Default: `Date.now()`. */
export function wholeMsClock(where: string, clock: Clock | undefined): Clock {
  if (clock === undefined) return () => Date.now();
  if (typeof clock !== "function") {
    throw new FloodgateError(
      "FLOODGATE_INVALID_CLOCK",
      `${where}: \`clock\` must be a function, but was ${shown(clock)}. Write clock: () => Date.now().`,
    );
  }
  return () => {
    const nowMs = clock();
    // The range of `Date`: a clock that returns nanoseconds is beyond it, and so is a number that has no exact milliseconds.
    if (Number.isFinite(nowMs) && Math.abs(nowMs) <= 8.64e15) return Math.floor(nowMs);
    throw new FloodgateError(
      "FLOODGATE_INVALID_CLOCK",
      `${where}: \`clock\` must return milliseconds since the epoch, but returned ${shown(nowMs)}.`,
    );
  };
}

/** The fastest drift between two clocks, as a ratio: twice the most that NTP corrects. */
const drift = 0.001;

/** An estimate of the server's clock. It errs early, so that the server never acts after a deadline of this process. */
export class ServerClock {
  /** The least number of milliseconds by which it is ahead of this process's monotonic clock; undefined while unknown. */
  #aheadMs: number | undefined;
  #learnedMs = 0;

  get isKnown(): boolean {
    return this.#aheadMs !== undefined;
  }

  /** The next reply may come from another server. */
  forget(): void {
    this.#aheadMs = undefined;
  }

  /**
   * Learns from a reply: the server read its clock between these two moments. The reply may have waited before it was read, so an earlier
   * estimate can be better. An earlier estimate that has become impossible means that a clock was set.
   */
  learn(serverMs: number, sentMs: number, receivedMs: number): void {
    const leastMs = serverMs - receivedMs;
    const earlierMs = this.#aheadMs === undefined ? leastMs : this.#aheadMs - (receivedMs - this.#learnedMs) * drift;
    // The server's time is rounded down to milliseconds, so it may be up to 1 ms later there.
    this.#aheadMs = earlierMs > leastMs && earlierMs <= serverMs + 1 - sentMs ? earlierMs : leastMs;
    this.#learnedMs = receivedMs;
  }

  /** The last whole millisecond that has ended on the server at this monotonic time; 0 while its clock is unknown. */
  notAfterMs(atMs: number): number {
    return this.#aheadMs === undefined ? 0 : Math.floor(this.#aheadMs + atMs) - 1;
  }
}
