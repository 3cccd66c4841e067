import { type FileHandle, open, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type LineBatch, LineSplitter } from "../read/lines.js";

/** A log that grows. */
export interface Growing {
  readonly name: string;
  /** The lines that have come since the last call. Returns undefined if no line has come. */
  read(): Promise<LineBatch | undefined>;
  /** The last line, if nothing ends it, and closes the log. */
  end(): Promise<LineBatch | undefined>;
}

const chunkBytes = 256 * 1024;

/**
 * A file that grows, from its beginning. If it is renamed and made anew, the rest of the old one is read, and then the new one; if it is
 * truncated, it is read from its new beginning. It may be missing for a while.
 */
export class GrowingFile implements Growing {
  readonly name: string;
  readonly #splitter = new LineSplitter();
  readonly #buffer = Buffer.alloc(chunkBytes);
  #file: FileHandle | undefined;
  #position = 0;
  /** Whether the name stood for another file at the last look. The old one is read once more, for lines that came in between. */
  #isReplaced = false;

  constructor(path: string) {
    this.name = path;
  }

  async read(): Promise<LineBatch | undefined> {
    this.#file ??= await opened(this.name);
    if (this.#file === undefined) return undefined;
    const { bytesRead } = await this.#file.read(this.#buffer, 0, chunkBytes, this.#position);
    if (bytesRead > 0) {
      this.#position += bytesRead;
      return this.#splitter.push(this.#buffer.subarray(0, bytesRead));
    }
    return this.#atEnd(this.#file);
  }

  async end(): Promise<LineBatch | undefined> {
    await this.#file?.close();
    this.#file = undefined;
    return this.#splitter.end();
  }

  async #atEnd(file: FileHandle): Promise<LineBatch | undefined> {
    const own = await file.stat();
    if (own.size < this.#position) {
      this.#position = 0;
      return this.#splitter.end();
    }
    const named = await stat(this.name).catch(() => undefined);
    if (named === undefined || (named.ino === own.ino && named.dev === own.dev)) return undefined;
    if (!this.#isReplaced) {
      this.#isReplaced = true;
      return { lines: [], tooLong: 0 };
    }
    this.#isReplaced = false;
    this.#position = 0;
    return this.end();
  }
}

async function opened(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** A stream, such as standard input. It is read no faster than its lines are taken. */
export class GrowingStream implements Growing {
  readonly name: string;
  readonly #splitter = new LineSplitter();
  readonly #chunks: Readable;
  #failure: unknown;

  constructor(name: string, chunks: AsyncIterable<Uint8Array>) {
    this.name = name;
    // Nothing is read ahead.
    this.#chunks = Readable.from(chunks, { highWaterMark: 0 }).on("error", (error) => {
      this.#failure = error;
    });
  }

  /** Whether it has ended. */
  get isOver(): boolean {
    return this.#chunks.readableEnded;
  }

  async read(): Promise<LineBatch | undefined> {
    if (this.#failure !== undefined) throw this.#failure;
    const chunk = this.#chunks.read();
    if (chunk !== null) return this.#splitter.push(chunk);
    // What is there already comes at once.
    await nextTurn();
    return this.#chunks.readableLength === 0 ? undefined : { lines: [], tooLong: 0 };
  }

  async end(): Promise<LineBatch | undefined> {
    return this.#splitter.end();
  }
}
