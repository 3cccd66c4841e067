import type { Io } from "../io.js";

/** A text that is drawn over the one before it. It is cut to the terminal, because a line that wraps could not be drawn over. */
export class LiveText {
  readonly #io: Io;
  #height = 0;

  constructor(io: Io) {
    this.#io = io;
  }

  draw(text: string): void {
    const { rows = 24, columns = 80 } = process.stdout;
    const lines = text.split("\n");
    const shown = lines.slice(0, Math.max(1, rows - 1)).map((line) => line.slice(0, columns - 1));
    this.clear();
    this.#io.out(`${shown.join("\n")}\n`);
    this.#height = shown.length;
  }

  clear(): void {
    if (this.#height > 0) this.#io.out(`\u001b[${this.#height}A\u001b[J`);
    this.#height = 0;
  }
}
