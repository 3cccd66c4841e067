import { type FileHandle, open, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { RuleSet } from "@floodgate/core/rules";
import type { LogRequest } from "../formats/log-format.js";
import { type LineBatch, LineSplitter } from "../read/lines.js";
import { ReorderBuffer } from "../read/reorder.js";
import { LogReader } from "../read/requests.js";
import { Replay, readingOf } from "../replay/replay.js";
import { measuring, type SimulateOptions, type Simulation, simulationOf } from "../simulate.js";

export interface FollowOptions extends SimulateOptions {
  /** Ends it: what has been read so far is the result. Without it, only streams that end do. */
  readonly signal?: AbortSignal | undefined;
  /** How long requests wait to be sorted before they count, in milliseconds; at most twice as long. Default 1000. */
  readonly settleMs?: number | undefined;
  /** How often files are looked at, in milliseconds. Default 250. */
  readonly pollMs?: number | undefined;
  /** Called after each look at the logs. `simulation` makes the figures of that moment. */
  readonly onLook?: ((simulation: () => Simulation) => void) | undefined;
}

/**
 * Replays logs that are still being written, as `simulate` does with whole ones: first what they hold, then each line that comes. Time goes
 * on by the times of the lines. Requests are sorted as far as they come together: those that have waited for `settleMs` count.
 * @throws FloodgateError if a rule, the format or an option is invalid.
 */
export async function follow(logs: readonly Growing[], set: RuleSet, options: FollowOptions = {}): Promise<Simulation> {
  const { signal, settleMs = 1000, pollMs = 250, onLook } = options;
  const replay = new Replay(set, options);
  const meters = measuring(replay, options);
  const reading = readingOf(set, options);
  const buffer = new ReorderBuffer(reading.reorder, reading.keeps);
  const readers = logs.map(({ name }) => new LogReader(name, reading, replay.tally, buffer));
  const decide = (requests: readonly LogRequest[]): void => {
    for (const request of requests) replay.decide(request);
  };
  const settle = (untilMs?: number): void => {
    for (const reader of readers) decide(reader.decideFormat());
    decide(buffer.takeAll(untilMs));
  };
  const now = (): Simulation => simulationOf(set, options, replay, meters);
  try {
    let waitedMs = 0;
    let newestBefore = Number.NEGATIVE_INFINITY;
    while (signal?.aborted !== true) {
      let isQuiet = true;
      for (const [i, log] of logs.entries()) {
        const batch = await log.read();
        if (batch === undefined) continue;
        isQuiet = false;
        decide((readers[i] as LogReader).read(batch));
      }
      if (isQuiet) {
        // The logs are read to their ends. New lines may come at every look, so this does not wait for a pause.
        if (waitedMs >= settleMs) {
          settle(newestBefore);
          newestBefore = buffer.newestMs;
          waitedMs = 0;
        }
        if (logs.every((log) => log instanceof GrowingStream && log.isOver)) break;
      }
      onLook?.(now);
      if (isQuiet) {
        waitedMs += pollMs;
        await sleep(pollMs, undefined, { signal }).catch(() => undefined);
      }
    }
    for (const [i, log] of logs.entries()) {
      const last = await log.end();
      if (last !== undefined) decide((readers[i] as LogReader).read(last));
    }
    settle();
    return now();
  } finally {
    replay.close();
  }
}

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
 * A file that grows, from its beginning. If it is renamed and made anew, the old one is read to its end, and then the new one. If it is
 * truncated, it is read from its beginning again. It may be missing for a while.
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
