/** How long at least an answered reset is remembered. */
export const rememberedMs = 1000;

/** Resets and refunds, by an id of what they concern: those in flight, and those that were answered in the last second or two. */
export class RecentResets {
  /** How many are in flight. */
  readonly #inFlight = new Map<string, number>();
  /** When they were answered, by the monotonic clock. */
  #answered = new Map<string, number>();
  #answeredBefore = new Map<string, number>();
  #turnedMs = Number.NEGATIVE_INFINITY;

  get isEmpty(): boolean {
    return this.#inFlight.size + this.#answered.size + this.#answeredBefore.size === 0;
  }

  /** Whether what was asked for at a time may be older than a reset, although its reply is read later. */
  mayFollow(id: string, sentMs: number): boolean {
    return this.#inFlight.has(id) || sentMs <= (this.#answered.get(id) ?? this.#answeredBefore.get(id) ?? Number.NEGATIVE_INFINITY);
  }

  /** @param done settles once the reset is answered. */
  note(id: string, done: Promise<unknown>): void {
    this.#inFlight.set(id, (this.#inFlight.get(id) ?? 0) + 1);
    const end = (): void => {
      const nowMs = performance.now();
      if (nowMs - this.#turnedMs > rememberedMs) {
        this.#answeredBefore = this.#answered;
        this.#answered = new Map();
        this.#turnedMs = nowMs;
      }
      this.#answered.set(id, nowMs);
      const left = (this.#inFlight.get(id) as number) - 1;
      if (left === 0) this.#inFlight.delete(id);
      else this.#inFlight.set(id, left);
    };
    done.then(end, end);
  }
}
