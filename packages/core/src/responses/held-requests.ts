import { startTimer, stopTimer } from "../support/runtime.js";

/** Requests that are held until their turn. */
export class HeldRequests {
  readonly #held = new Map<unknown, () => void>();

  /** How many requests are held. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Runs `go` after `delayMs`. Returns a function that cancels it, for a client that disconnects. The timer does not keep the process
   * alive.
   */
  hold(delayMs: number, go: () => void): () => void {
    const timer = startTimer(() => {
      this.#held.delete(timer);
      go();
    }, delayMs);
    this.#held.set(timer, go);
    return () => {
      stopTimer(timer);
      this.#held.delete(timer);
    };
  }

  /** Releases all held requests at once. */
  release(): void {
    for (const [timer, go] of [...this.#held]) {
      stopTimer(timer);
      this.#held.delete(timer);
      go();
    }
  }
}
