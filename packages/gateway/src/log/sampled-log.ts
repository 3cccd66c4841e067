import type { Logger } from "pino";

/** How long a kind of line is left out after it was logged. */
const intervalMs = 10_000;

/** More kinds than this are forgotten, so that their texts cannot fill the memory. */
const mostKinds = 100;

interface Sampled {
  loggedMs: number;
  skipped: number;
}

/**
 * Logs what each request may cause again: one line in ten seconds for each kind, with the number of lines that were left out, so that no
 * client fills the log.
 */
export class SampledLog {
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #kinds = new Map<string, Sampled>();

  /** @param now a monotonic clock, in milliseconds. */
  constructor(log: Logger, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  /** @param kind what makes lines the same; also the line's field `kind`. */
  write(level: "warn" | "error", kind: string, message: string, details: object = {}): void {
    const now = this.#now();
    const known = this.#kinds.get(kind);
    if (known !== undefined && now - known.loggedMs < intervalMs) {
      known.skipped++;
      return;
    }
    if (known === undefined && this.#kinds.size >= mostKinds) this.#kinds.clear();
    this.#log[level]({ kind, ...details, ...(known !== undefined && known.skipped > 0 && { skipped: known.skipped }) }, message);
    this.#kinds.set(kind, { loggedMs: now, skipped: 0 });
  }
}
