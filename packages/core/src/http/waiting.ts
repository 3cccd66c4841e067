/** The one thing that every runtime has beside the language; typed here because core has no types of any of them. */
declare const setTimeout: (run: () => void, ms: number) => unknown;
declare const clearTimeout: (timer: unknown) => void;

/** Requests that are held until their turn. */
export class Waiting {
  readonly #held = new Map<unknown, () => void>();

  /**
   * Runs `go` in `delayMs`, and answers a function that calls it off: for a client that went away.
   * The timer keeps no process alive.
   */
  hold(delayMs: number, go: () => void): () => void {
    const timer = setTimeout(() => {
      this.#held.delete(timer);
      go();
    }, delayMs);
    (timer as { unref?: () => void }).unref?.();
    this.#held.set(timer, go);
    return () => {
      clearTimeout(timer);
      this.#held.delete(timer);
    };
  }

  /** Lets go at once all that wait. */
  release(): void {
    for (const [timer, go] of [...this.#held]) {
      clearTimeout(timer);
      this.#held.delete(timer);
      go();
    }
  }
}
