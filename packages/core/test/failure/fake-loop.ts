import { vi } from "vitest";

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/**
 * A fake event loop with Node's phases: due timers, then arrived data, then immediates. A callback that blocks delays all others. It
 * replaces the real loop until the globals are unstubbed.
 */
export class FakeLoop {
  nowMs = 1_000;
  /** The total time that callbacks have blocked so far. */
  stoodMs = 0;
  #timers: Timer[] = [];
  readonly #stopped = new WeakSet<Timer>();
  #arrivals: Timer[] = [];
  #immediates: (() => void)[] = [];

  constructor() {
    vi.stubGlobal("performance", { now: () => this.nowMs });
    vi.stubGlobal("setTimeout", (run: () => void, ms = 0) => {
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

  /** Schedules data that can be read from a time on. */
  arrive(atMs: number, run: () => void): void {
    if (atMs < Number.POSITIVE_INFINITY) this.#arrivals.push({ atMs, run });
  }

  /** Blocks: the running callback computes for a while. */
  block(ms: number): void {
    this.nowMs += ms;
    this.stoodMs += ms;
  }

  /** Runs until nothing is left to do. */
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
