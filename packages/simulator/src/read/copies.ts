/** How many characters of copies are remembered before all are forgotten. They are made anew then. */
const remembered = 2 * 1024 * 1024;

/** Copies of parts of lines. A part of a line keeps the text of its whole batch in memory, so what is kept must be a copy. */
export class Copies {
  #copies = new Map<string, string>();
  #characters = 0;

  /** A copy; the same one for the same text, as long as it is remembered. */
  of(text: string): string {
    const known = this.#copies.get(text);
    if (known !== undefined) return known;
    const copy = Buffer.from(text).toString();
    this.#characters += text.length;
    if (this.#characters > remembered) {
      this.#copies = new Map();
      this.#characters = text.length;
    }
    this.#copies.set(copy, copy);
    return copy;
  }
}
