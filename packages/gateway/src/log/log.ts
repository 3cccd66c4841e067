import pino, { type Logger } from "pino";
import type { Settings } from "../config/settings.js";
import { prettyLine } from "./pretty.js";

/** Where log lines go: standard output, for example. */
export interface LogTarget {
  write(line: string): unknown;
  /** Whether a person reads them. */
  readonly isTTY?: boolean | undefined;
}

/** Makes a log of one line an event: JSON, or readable on a terminal. No line can control a terminal. */
export function createLog({ logLevel, logFormat }: Pick<Settings, "logLevel" | "logFormat">, target: LogTarget): Logger {
  const write = isPretty({ logFormat }, target)
    ? (line: string) => target.write(prettyLine(line))
    : (line: string) => target.write(withoutControls(line));
  const timestamp = pino.stdTimeFunctions.isoTime;
  return pino({ level: logLevel, base: null, messageKey: "message", timestamp, formatters: { level: (level) => ({ level }) } }, { write });
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
