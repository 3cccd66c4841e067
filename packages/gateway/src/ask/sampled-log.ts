import type { Logger } from "pino";

/** At most one line per interval and kind; what is left out is counted in the next line. */
const intervalMs = 10_000;

interface Kind {
  loggedMs: number;
  skipped: number;
}

/** Logs what each request may cause again, so that no client fills the log. */
export class SampledLog {
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #kinds = new Map<string, Kind>();

  constructor(log: Logger, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  /** @param kind one of a few words, which also is the line's field `kind`. */
  write(level: "warn" | "error", kind: string, message: string, details: object = {}): void {
    const now = this.#now();
    const known = this.#kinds.get(kind);
    if (known !== undefined && now - known.loggedMs < intervalMs) {
      known.skipped++;
      return;
    }
    this.#log[level]({ kind, ...details, ...(known !== undefined && known.skipped > 0 && { skipped: known.skipped }) }, message);
    this.#kinds.set(kind, { loggedMs: now, skipped: 0 });
  }
}
