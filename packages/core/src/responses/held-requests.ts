import { inThisContext, stopTimer } from "../support/runtime.js";

/** A global of every runtime. */
declare const setTimeout: (run: () => void, ms: number) => unknown;

/** Requests that are held until their turn. */
export class HeldRequests {
  /** Each lets one go. */
  readonly #held = new Set<() => void>();

  /** How many requests are held. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Calls `run` after `delayMs`, in the async context of this call, whoever lets it go. Returns a function that cancels it, for a client that
   * disconnects, and tells whether it was still held. The timer keeps the process alive, because a job may wait for its turn with nothing else
   * to do.
   */
  hold(delayMs: number, run: () => void): () => boolean {
    const cancel = (): boolean => {
      stopTimer(timer);
      return this.#held.delete(letGo);
    };
    const go = inThisContext<void, void>(run);
    const letGo = (): void => {
      cancel();
      go();
    };
    const timer = setTimeout(letGo, delayMs);
    this.#held.add(letGo);
    return cancel;
  }

  /** Releases all held requests at once. */
  release(): void {
    for (const letGo of [...this.#held]) letGo();
  }
}
