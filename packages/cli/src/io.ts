import { text } from "node:stream/consumers";
import { styleText } from "node:util";

/** What a command reads and writes besides files and Redis. */
export interface Io {
  /** Writes to standard output, as it is. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** Whether standard output is a terminal. */
  readonly isTerminal: boolean;
  /** Whether it is one that shows colours. */
  readonly hasColors: boolean;
}

/** This process's own. */
export const processIo: Io = {
  out: (words) => process.stdout.write(words),
  err: (words) => process.stderr.write(words),
  readInput: () => text(process.stdin),
  isTerminal: process.stdout.isTTY === true,
  get hasColors() {
    return this.isTerminal && process.stdout.hasColors();
  },
};

/** Colours where they are seen. */
export function paint(io: Io, format: "bold" | "red" | "green" | "dim", words: string): string {
  return io.hasColors ? styleText(format, words) : words;
}
