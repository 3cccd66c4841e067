import { vi } from "vitest";

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/**
 * An event loop as Node turns it: timers that are due, then what has arrived, then immediates. Nothing else runs while one of these
 * blocks. Runs in place of the real one until the globals are unstubbed.
 */
export class FakeLoop {
  nowMs = 1_000;
  /** How long code has computed so far. */
  stoodMs = 0;
  #timers: Timer[] = [];
  readonly #stopped = new WeakSet<Timer>();
  #arrivals: Timer[] = [];
  #immediates: (() => void)[] = [];

  constructor() {
    vi.stubGlobal("performance", { now: () => this.nowMs });
    vi.stubGlobal("setTimeout", (run: () => void, ms: number) => {
      const timer = { atMs: this.nowMs + Math.max(1, ms), run };
      this.#timers.push(timer);
      return timer;
    });
    vi.stubGlobal("clearTimeout", (timer: Timer) => {
      this.#stopped.add(timer);
      this.#timers = this.#timers.filter((other) => other !== timer);
    });
  }

  immediately(run: () => void): void {
    this.#immediates.push(run);
  }

  /** Something is there to be read from then on. */
  arrive(atMs: number, run: () => void): void {
    if (atMs < Number.POSITIVE_INFINITY) this.#arrivals.push({ atMs, run });
  }

  /** The code at hand computes. */
  block(ms: number): void {
    this.nowMs += ms;
    this.stoodMs += ms;
  }

  /** Turns until there is nothing more to do. */
  run(): void {
    while (this.#timers.length + this.#arrivals.length + this.#immediates.length > 0) {
      for (const timer of this.#take("timers")) if (!this.#stopped.has(timer)) timer.run();
      if (this.#immediates.length === 0) this.#sleep();
      for (const arrival of this.#take("arrivals")) arrival.run();
      const immediates = this.#immediates;
      this.#immediates = [];
      for (const run of immediates) run();
    }
  }

  #take(kind: "timers" | "arrivals"): Timer[] {
    const all = kind === "timers" ? this.#timers : this.#arrivals;
    const due = all.filter(({ atMs }) => atMs <= this.nowMs).sort((one, other) => one.atMs - other.atMs);
    const left = all.filter(({ atMs }) => atMs > this.nowMs);
    if (kind === "timers") this.#timers = left;
    else this.#arrivals = left;
    return due;
  }

  #sleep(): void {
    const nextMs = Math.min(...[...this.#timers, ...this.#arrivals].map(({ atMs }) => atMs));
    if (nextMs < Number.POSITIVE_INFINITY) this.nowMs = Math.max(this.nowMs, nextMs);
  }
}
