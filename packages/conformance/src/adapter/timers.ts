interface Timer {
  readonly dueMs: number;
  readonly run: () => void;
}

/** The timers of this process, which fire only when the time is moved. */
export class Timers {
  #nowMs = 0;
  #next = 1;
  readonly #waiting = new Map<number, Timer>();

  /** Moves the time. What comes due meanwhile fires, in its order. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      let first: [number, Timer] | undefined;
      for (const one of this.#waiting) if (first === undefined || one[1].dueMs < first[1].dueMs) first = one;
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

  /** Runs something while `setTimeout` is this one's. Node's own modules keep theirs. */
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
