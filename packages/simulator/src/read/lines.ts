import { StringDecoder } from "node:string_decoder";

/** The longest line that is read, in characters. Servers accept requests of some kilobytes. */
const maxLineLength = 1024 * 1024;

/** Lines that were read together. */
export interface LineBatch {
  readonly lines: string[];
  /** How many lines among them were too long, and are left out. */
  readonly tooLong: number;
}

/** Splits bytes into lines. Holds no more than one chunk and one line. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<LineBatch> {
  const splitter = new LineSplitter();
  for await (const chunk of chunks) yield splitter.push(chunk);
  const last = splitter.end();
  if (last !== undefined) yield last;
}

/** Splits bytes into lines, as they come. */
export class LineSplitter {
  readonly #decoder = new StringDecoder("utf8");
  /** The beginning of the line that has not ended yet. Of one that is too long, no more is kept. */
  #rest = "";
  #isFirst = true;

  /** The lines that a chunk completes. */
  push(chunk: Uint8Array): LineBatch {
    const lines = this.#decoder.write(chunk).split("\n");
    lines[0] = this.#rest.length > maxLineLength ? this.#rest : `${this.#rest}${lines[0]}`;
    this.#rest = lines.pop() as string;
    return this.#batch(lines);
  }

  /** The last line, if nothing ends it. Then the splitter begins anew. */
  end(): LineBatch | undefined {
    const last = this.#rest + this.#decoder.end();
    const batch = last === "" ? undefined : this.#batch([last]);
    this.#rest = "";
    this.#isFirst = true;
    return batch;
  }

  #batch(all: string[]): LineBatch {
    const [first] = all;
    if (this.#isFirst && first !== undefined) {
      all[0] = first.replace(/^\ufeff/, "");
      this.#isFirst = false;
    }
    const lines = all.filter(({ length }) => length <= maxLineLength).map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
    return { lines, tooLong: all.length - lines.length };
  }
}

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
