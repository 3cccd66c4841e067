import pino, { type Logger } from "pino";
import type { Settings } from "../config/settings.js";

/** Where log lines go: standard output, for example. */
export interface LogTarget {
  write(line: string): unknown;
  /** Whether a person reads them. */
  readonly isTTY?: boolean | undefined;
  /** How much waits to be written. While it is more than a megabyte, lines are dropped, and the next one says how many. */
  readonly writableLength?: number | undefined;
}

/** A reader that has stopped must not fill the memory. */
const maxWaiting = 2 ** 20;

/** Makes a log of one line an event: JSON, or readable on a terminal. No line can control a terminal. */
export function createLog({ logLevel, logFormat }: Pick<Settings, "logLevel" | "logFormat">, target: LogTarget): Logger {
  const format = isPretty({ logFormat }, target) ? prettyLine : withoutControls;
  let dropped = 0;
  const write = (line: string): void => {
    if ((target.writableLength ?? 0) > maxWaiting) {
      dropped++;
      return;
    }
    target.write(format(line));
    dropped = 0;
  };
  const timestamp = pino.stdTimeFunctions.isoTime;
  const mixin = (): object => (dropped > 0 ? { dropped } : {});
  return pino(
    { level: logLevel, base: null, messageKey: "message", timestamp, mixin, formatters: { level: (level) => ({ level }) } },
    { write },
  );
}

/** Whether lines are readable, in place of JSON. */
export function isPretty({ logFormat }: Pick<Settings, "logFormat">, { isTTY }: LogTarget): boolean {
  return logFormat === "auto" ? isTTY === true : logFormat === "pretty";
}

/** Escapes what JSON leaves as it is and a terminal may obey, such as the C1 controls. */
function withoutControls(line: string): string {
  return line.replace(/[^\n\P{C}]/gu, (character) =>
    Array.from({ length: character.length }, (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** Formats a line of JSON for people: `12:00:01 WARN  Redis does not answer  redis=127.0.0.1:6379`. */
function prettyLine(json: string): string {
  const { level, time, message, err, ...rest } = JSON.parse(json) as Record<string, unknown>;
  const fields = Object.entries(rest).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const failure = (err as { message?: unknown } | undefined)?.message;
  const text = [message, failure && `(${failure})`].filter(Boolean).join(" ");
  const line = [`${time}`.slice(11, 19), `${level}`.toUpperCase().padEnd(5), [text, ...fields].join("  ")].join(" ");
  return `${withoutTerminalCodes(line)}\n`;
}

/** A message may have several lines, such as the problems of a rules file. Later lines are indented, so that none can pass for a log line. */
function withoutTerminalCodes(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.replace(/[^\t\P{C}]/gu, "\u{fffd}"))
    .join("\n    ");
}

/** How long a kind of line is left out after it was logged. */
const intervalMs = 10_000;

/** More kinds than this are forgotten, so that their texts cannot fill the memory. */
const maxKinds = 100;

/** @param kind what makes lines the same; also the line's field `kind`. */
export type WriteSampled = (level: "warn" | "error", kind: string, message: string, details?: object) => void;

/** Logs what any request may cause again: one line for each kind in ten seconds, with the number of lines left out. So no client fills the log. */
export function sampledLog(log: Logger): WriteSampled {
  const kinds = new Map<string, { readonly loggedMs: number; skipped: number }>();
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
