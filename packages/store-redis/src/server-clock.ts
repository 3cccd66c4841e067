/** How far two clocks run apart at most, in milliseconds each millisecond: twice what NTP corrects. */
const drift = 0.001;

/** What is known of the server's clock. It is told of too early rather than too late, so that what it is told to do in time is done in time. */
export class ServerClock {
  /** At least by so much it is ahead of this process's steady clock; undefined while unknown. */
  #aheadMs: number | undefined;
  #learnedMs = 0;

  get isKnown(): boolean {
    return this.#aheadMs !== undefined;
  }

  /** Whoever answers next may be another server. */
  forget(): void {
    this.#aheadMs = undefined;
  }

  /**
   * The server read its clock some time between these two moments. The reply may have waited here to be read, so what an
   * earlier one showed may be closer; one that cannot be so any more shows that a clock was set.
   */
  learn(serverMs: number, sentMs: number, receivedMs: number): void {
    const leastMs = serverMs - receivedMs;
    const earlierMs = this.#aheadMs === undefined ? leastMs : this.#aheadMs - (receivedMs - this.#learnedMs) * drift;
    // The server tells whole milliseconds, so it may be a millisecond later there.
    this.#aheadMs = earlierMs > leastMs && earlierMs <= serverMs + 1 - sentMs ? earlierMs : leastMs;
    this.#learnedMs = receivedMs;
  }

  /** The last whole millisecond there that is over by this moment here; 0, which is always over, while the clock is unknown. */
  notAfterMs(atMs: number): number {
    return this.#aheadMs === undefined ? 0 : Math.floor(this.#aheadMs + atMs) - 1;
  }
}
