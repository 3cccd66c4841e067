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
  let parts: Uint8Array[] = [];
  let length = 0;
  let isTooLong = false;
  let isFirst = true;
  const keep = (bytes: Uint8Array): void => {
    if (isTooLong || bytes.length === 0) return;
    length += bytes.length;
    isTooLong = length > maxLineBytes;
    if (isTooLong) parts = [];
    // A copy: a slice would keep its whole chunk.
    else parts.push(Uint8Array.prototype.slice.call(bytes));
  };
  for await (const chunk of chunks) {
    const last = chunk.lastIndexOf(newline);
    if (last < 0) {
      keep(chunk);
      continue;
    }
    let from = 0;
    let tooLong = 0;
    const lines: string[] = [];
    if (length > 0) {
      from = chunk.indexOf(newline) + 1;
      keep(chunk.subarray(0, from - 1));
      if (isTooLong) tooLong++;
      else lines.push(withoutReturn(textOf(Buffer.concat(parts))));
    }
    parts = [];
    length = 0;
    isTooLong = false;
    if (from <= last) split(textOf(chunk.subarray(from, last)), lines);
    keep(chunk.subarray(last + 1));
    if (isFirst && lines[0] !== undefined) lines[0] = lines[0].replace(/^\ufeff/, "");
    isFirst = false;
    yield { lines, tooLong };
  }
  if (length > 0) yield isTooLong ? { lines: [], tooLong: 1 } : { lines: [withoutReturn(textOf(Buffer.concat(parts)))], tooLong: 0 };
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
