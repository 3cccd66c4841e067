import type { Server } from "node:http";

const tickMs = 2;
/** What sockets, frameworks and timers take beside the decision. */
const graceMs = 50;

/**
 * Times requests from when a server gets them until their answers are out. While this process itself stands still (others have the
 * processor) no time passes by this watch: that is scheduling, and makes no decision late.
 */
export class Stopwatch {
  longestMs = 0;
  /** Requests that took longer than they were allowed. */
  late = 0;
  readonly #timeoutMs: number;
  readonly #timer: NodeJS.Timeout;
  #tickedMs = performance.now();
  #stoodMs = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#timer = setInterval(() => {
      this.#stoodMs = this.#standstill();
      this.#tickedMs = performance.now();
    }, tickMs);
  }

  watch(server: Server): void {
    server.prependListener("request", (_request, response) => {
      const startMs = performance.now();
      const stoodMs = this.#standstill();
      response.once("finish", () => {
        const tookMs = performance.now() - startMs - (this.#standstill() - stoodMs);
        this.longestMs = Math.max(this.longestMs, tookMs);
        if (tookMs > this.#timeoutMs + graceMs) this.late++;
      });
    });
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** For how long, in all, the event loop has not turned when it should have. */
  #standstill(): number {
    return this.#stoodMs + Math.max(0, performance.now() - this.#tickedMs - 2 * tickMs);
  }
}
