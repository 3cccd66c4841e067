/** How fast two clocks drift apart at most, in milliseconds a millisecond: twice the most that NTP corrects. */
const drift = 0.001;

/** An estimate of the server's clock. It errs early, so that the server never acts after a deadline of this process. */
export class ServerClock {
  /** The least by which it is ahead of this process's steady clock, in milliseconds; undefined while unknown. */
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
   * The server read its clock between these two moments. The reply may have waited here to be read, so an earlier estimate may be
   * closer. An earlier estimate that is no longer possible shows that a clock was set.
   */
  learn(serverMs: number, sentMs: number, receivedMs: number): void {
    const leastMs = serverMs - receivedMs;
    const earlierMs = this.#aheadMs === undefined ? leastMs : this.#aheadMs - (receivedMs - this.#learnedMs) * drift;
    // The server's time is cut to whole milliseconds, so it may be up to a millisecond later there.
    this.#aheadMs = earlierMs > leastMs && earlierMs <= serverMs + 1 - sentMs ? earlierMs : leastMs;
    this.#learnedMs = receivedMs;
  }

  /** The last whole millisecond of the server that is over at this moment of the steady clock; 0 while the clock is unknown. */
  notAfterMs(atMs: number): number {
    return this.#aheadMs === undefined ? 0 : Math.floor(this.#aheadMs + atMs) - 1;
  }
}
