interface Timer {
  readonly dueMs: number;
  readonly run: () => void;
}

/** Fake timers for this process: they fire only when `advance` is called. */
export class Timers {
  #nowMs = 0;
  #next = 1;
  readonly #waiting = new Map<number, Timer>();

  /** Advances the time, and fires the timers that come due, in order. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      let first: [number, Timer] | undefined;
      for (const timer of this.#waiting) if (first === undefined || timer[1].dueMs < first[1].dueMs) first = timer;
      if (first === undefined || first[1].dueMs > endMs) break;
      this.#waiting.delete(first[0]);
      this.#nowMs = first[1].dueMs;
      first[1].run();
    }
    this.#nowMs = endMs;
  }

  get count(): number {
    return this.#waiting.size;
  }

  /** Replaces `setTimeout` and `clearTimeout` while `run` runs. Node's own modules keep the real ones. */
  async during(run: () => Promise<void>): Promise<void> {
    const { setTimeout, clearTimeout } = globalThis;
    globalThis.setTimeout = this.#start as typeof setTimeout;
    globalThis.clearTimeout = this.#stop as typeof clearTimeout;
    try {
      await run();
    } finally {
      Object.assign(globalThis, { setTimeout, clearTimeout });
    }
  }

  readonly #start = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): object => {
    const id = this.#next++;
    this.#waiting.set(id, { dueMs: this.#nowMs + ms, run: () => run(...args) });
    const timer = { [Symbol.toPrimitive]: () => id, ref: () => timer, unref: () => timer };
    return timer;
  };

  readonly #stop = (timer: unknown): void => {
    this.#waiting.delete(Number(timer));
  };
}
