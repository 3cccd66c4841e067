import type { Server } from "node:http";

const tickMs = 2;
/** The allowance for sockets, frameworks and timers, in addition to the decision. Less than a slow Redis takes beyond the timeout. */
const graceMs = 150;

/**
 * Times requests in the server, from arrival to response. It stops while this process does not run (another process has the CPU):
 * scheduling does not make a decision late.
 */
export class Stopwatch {
  longestMs = 0;
  /** Requests that took too long. */
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

  /** The total time for which the event loop was late. */
  #standstill(): number {
    return this.#stoodMs + Math.max(0, performance.now() - this.#tickedMs - 2 * tickMs);
  }
}
