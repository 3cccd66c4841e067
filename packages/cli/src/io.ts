import { text as readText } from "node:stream/consumers";
import { WriteStream } from "node:tty";
import { styleText } from "node:util";

/** The terminal of a command: everything it reads and writes besides files and Redis. */
export interface Io {
  /** Writes to standard output. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  /** Reads all of standard input. */
  readInput(): Promise<string>;
  /** Standard input, piece by piece. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Whether standard output is a terminal. */
  readonly isTerminal: boolean;
  /** Where a progress bar is drawn: standard error, if it is a terminal; else undefined. */
  readonly errTerminal: NodeJS.WritableStream | undefined;
  /** Whether standard output shows colours. */
  readonly hasColors: boolean;
}

/** The terminal of this process. */
export const processIo: Io = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  readInput: () => readText(process.stdin),
  get input() {
    return process.stdin;
  },
  isTerminal: process.stdout.isTTY === true,
  errTerminal: process.stderr.isTTY === true ? process.stderr : undefined,
  get hasColors() {
    // FORCE_COLOR says so where there is no terminal, in CI for example. Node reads it, NO_COLOR and TERM.
    return (this.isTerminal || process.env["FORCE_COLOR"] !== undefined) && WriteStream.prototype.hasColors();
  },
};

type Format = "bold" | "red" | "green" | "dim";

/** Formats a text if the terminal shows colours. */
export function paint(io: Io, format: Format, text: string): string {
  return io.hasColors ? styleText(format, text) : text;
}

/** `paint` for one terminal. */
export function painter(io: Io): (format: Format, text: string) => string {
  return (format, text) => paint(io, format, text);
}
