import type { Logger } from "pino";

/** How long a kind of line is left out after it was logged. */
const intervalMs = 10_000;

/** More kinds than this are forgotten, so that their texts cannot fill the memory. */
const maxKinds = 100;

interface Sampled {
  loggedMs: number;
  skipped: number;
}

/** @param kind what makes lines the same; also the line's field `kind`. */
export type WriteSampled = (level: "warn" | "error", kind: string, message: string, details?: object) => void;

/**
 * Logs what each request may cause again: one line in ten seconds for each kind, with the number of lines that were left out, so that no
 * client fills the log.
 */
export function sampledLog(log: Logger): WriteSampled {
  const kinds = new Map<string, Sampled>();
  return (level, kind, message, details = {}) => {
    // A monotonic clock.
    const now = performance.now();
    const known = kinds.get(kind);
    if (known !== undefined && now - known.loggedMs < intervalMs) {
      known.skipped++;
      return;
    }
    if (known === undefined && kinds.size >= maxKinds) kinds.clear();
    log[level]({ kind, ...details, ...(known !== undefined && known.skipped > 0 && { skipped: known.skipped }) }, message);
    kinds.set(kind, { loggedMs: now, skipped: 0 });
  };
}
