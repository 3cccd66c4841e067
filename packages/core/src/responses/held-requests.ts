import { stopTimer } from "../support/runtime.js";
import { warnOnce } from "../support/warn.js";
import { type NodeResponse, whenEnded } from "./response-end.js";

/** A global of every runtime. */
declare const setTimeout: (run: () => void, ms: number) => unknown;

/** How long `onLimited` may take to answer after it returned: it may render a template or open a file. */
const answerMs = 5000;

/** Requests that are held until their turn. */
export class HeldRequests {
  /** Each lets one go. */
  readonly #held = new Set<() => void>();

  /** How many requests are held. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Runs `go` after `delayMs`. Returns a function that cancels it, for a client that disconnects, and tells whether it was still held. The
   * timer keeps the process alive, because a job may wait for its turn with nothing else to do.
   */
  hold(delayMs: number, go: () => void): () => boolean {
    const cancel = (): boolean => {
      stopTimer(timer);
      return this.#held.delete(letGo);
    };
    const letGo = (): void => {
      cancel();
      go();
    };
    const timer = setTimeout(letGo, delayMs);
    this.#held.add(letGo);
    return cancel;
  }

  /** Sends the usual answer of a rejected request, unless `onLimited`, which has returned, answers it within five seconds. */
  answerInTime(response: NodeResponse & { readonly headersSent: boolean }, send: () => unknown): void {
    const answerNow = (): void => {
      if (response.headersSent || response.writableEnded) return;
      warnOnce(
        "FLOODGATE_UNANSWERED",
        `\`onLimited\` has not answered ${answerMs / 1000} seconds after it returned, so the limit has answered 429. Write onLimited: (req, res) => res.end("Slow down"), or return a promise if it takes longer. To log only, use \`onEvent\`.`,
      );
      send();
    };
    whenEnded(response, this.hold(answerMs, answerNow));
  }

  /** Releases all held requests at once. */
  release(): void {
    for (const letGo of [...this.#held]) letGo();
  }
}
