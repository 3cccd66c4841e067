/** How many copies are remembered before all are forgotten. They are made anew then. */
const remembered = 200_000;

/** Copies of parts of lines. A part of a line keeps the text of its whole batch in memory, so what is kept must be a copy. */
export class Copies {
  #copies = new Map<string, string>();

  of(text: string): string {
    const known = this.#copies.get(text);
    if (known !== undefined) return known;
    const copy = Buffer.from(text).toString();
    if (this.#copies.size >= remembered) this.#copies = new Map();
    this.#copies.set(copy, copy);
    return copy;
  }
}
