import { startTimer, stopTimer } from "../support/runtime.js";

/** Requests that are held until their turn. */
export class Waiting {
  readonly #held = new Map<unknown, () => void>();

  /**
   * Runs `go` in `delayMs`, and answers a function that calls it off: for a client that went away.
   * The timer keeps no process alive.
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

  /** Lets go at once all that wait. */
  release(): void {
    for (const [timer, go] of [...this.#held]) {
      stopTimer(timer);
      this.#held.delete(timer);
      go();
    }
  }
}
