import { isAscii } from "node:buffer";

const newline = 0x0a;
const carriageReturn = 13;

/** The longest line that is read, in bytes. Servers accept requests of some kilobytes. */
export const maxLineBytes: number = 1024 * 1024;

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
  #parts: Uint8Array[] = [];
  #length = 0;
  #isTooLong = false;
  #isFirst = true;

  /** The lines that a chunk completes. */
  push(chunk: Uint8Array): LineBatch {
    const last = chunk.lastIndexOf(newline);
    if (last < 0) {
      this.#keep(chunk);
      return { lines: [], tooLong: 0 };
    }
    let from = 0;
    const lines: string[] = [];
    let tooLong = 0;
    if (this.#length > 0) {
      from = chunk.indexOf(newline) + 1;
      this.#keep(chunk.subarray(0, from - 1));
      if (this.#isTooLong) tooLong++;
      else lines.push(this.#kept());
      this.#reset();
    }
    if (from <= last) split(textOf(chunk.subarray(from, last)), lines);
    this.#keep(chunk.subarray(last + 1));
    if (this.#isFirst && lines[0] !== undefined) lines[0] = lines[0].replace(/^\ufeff/, "");
    this.#isFirst = false;
    return { lines, tooLong };
  }

  /** The last line, if nothing ends it. Then the splitter begins anew. */
  end(): LineBatch | undefined {
    const batch = this.#length === 0 ? undefined : this.#isTooLong ? { lines: [], tooLong: 1 } : { lines: [this.#kept()], tooLong: 0 };
    this.#reset();
    this.#isFirst = true;
    return batch;
  }

  #keep(bytes: Uint8Array): void {
    if (this.#isTooLong || bytes.length === 0) return;
    this.#length += bytes.length;
    this.#isTooLong = this.#length > maxLineBytes;
    if (this.#isTooLong) this.#parts = [];
    // A copy: a slice would keep its whole chunk.
    else this.#parts.push(Uint8Array.prototype.slice.call(bytes));
  }

  #kept(): string {
    const line = withoutReturn(textOf(Buffer.concat(this.#parts)));
    return this.#isFirst ? line.replace(/^\ufeff/, "") : line;
  }

  #reset(): void {
    this.#parts = [];
    this.#length = 0;
    this.#isTooLong = false;
  }
}

function textOf(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString(isAscii(buffer) ? "latin1" : "utf8");
}

function split(text: string, lines: string[]): void {
  let from = 0;
  for (let to = text.indexOf("\n"); to >= 0; to = text.indexOf("\n", from)) {
    lines.push(withoutReturn(text.slice(from, to)));
    from = to + 1;
  }
  lines.push(withoutReturn(text.slice(from)));
}

function withoutReturn(line: string): string {
  return line.charCodeAt(line.length - 1) === carriageReturn ? line.slice(0, -1) : line;
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
