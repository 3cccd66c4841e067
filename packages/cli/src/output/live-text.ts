import type { Io } from "../io.js";

/**
 * A text that is drawn over the one before it. The terminal cuts lines that are too long, whatever the width of their characters: a line
 * that wraps could not be drawn over.
 */
export class LiveText {
  readonly #io: Io;
  #height = 0;

  constructor(io: Io) {
    this.#io = io;
  }

  draw(text: string): void {
    const { rows = 24 } = process.stdout;
    const shown = text.split("\n").slice(0, Math.max(1, rows - 1));
    this.clear();
    this.#io.out(`${wrapOff}${shown.join("\n")}${wrapOn}\n`);
    this.#height = shown.length;
  }

  clear(): void {
    if (this.#height > 0) this.#io.out(`\u001b[${this.#height}A\u001b[J`);
    this.#height = 0;
  }
}

const wrapOff = "\u001b[?7l";
const wrapOn = "\u001b[?7h";
