import { detectFormat, type FormatOptions, formatNames, formatOf } from "../formats/known.js";
import type { LogFormat, LogRequest, Skip } from "../formats/log-format.js";
import { isBlank } from "../formats/pattern.js";
import { Copies, type LineBatch, linesOf } from "./lines.js";
import { type Kept, ReorderBuffer } from "./reorder.js";
import { bytesOf, type LogSource } from "./source.js";

export interface LogOptions extends FormatOptions {
  /** The name of the log's format, or a pattern in the syntax of nginx's `log_format`. Default: found out for each log. */
  readonly format?: string | undefined;
  /** Called now and then with the bytes and the lines that were read since the last call. */
  readonly onProgress?: ((bytes: number, lines: number) => void) | undefined;
}

export interface ReadOptions extends LogOptions {
  /** How many requests are sorted by time at once. */
  readonly reorder: number;
  readonly keeps: Kept;
}

/** What was read of logs. */
export class Tally {
  /** `requests`, and all kinds of skipped ones. */
  lines = 0;
  requests = 0;
  readonly skipped: Record<Skip, number> = { blank: 0, malformed: 0, "no-time": 0, "too-long": 0, "no-request": 0 };
  /** Requests whose time was before that of a request that had been replayed: they count at the later time. */
  late = 0;
  /** By how much the latest one was late, in milliseconds. */
  latestMs = 0;
  firstMs: number = Number.POSITIVE_INFINITY;
  lastMs: number = Number.NEGATIVE_INFINITY;
  readonly formats: Map<string, string> = new Map();
  /** What was wrong with a log as a whole, in words. */
  readonly problems: string[] = [];

  skip(why: Skip, count = 1): void {
    this.lines += count;
    this.skipped[why] += count;
  }
}

/**
 * The name of a service (`caddy-1  | `) or of a pod, as Docker, kubectl (`[pod/caddy-7d9/caddy] `), kubetail (`[caddy-7d9 caddy] `) and stern
 * (`caddy-7d9 caddy `) write it before each line.
 */
const nameBefore =
  /^(?:\S{1,100} +\| |\[pod\/\S{1,400}\] |\[[a-z][a-z\d.-]{1,253}(?: [a-z\d-]{1,63})?\] |[a-z\d.]{1,253}-[a-z\d.-]{1,253} [a-z\d][a-z\d-]{0,62} )/;
/** The time at which they got the line, and in the files of containers its stream. */
const timeBefore = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) F )?/;

/** A line without what such tools write before it, in each way to read it. The shortest comes first: a name could be taken for a field. */
function barest(line: string): readonly string[] {
  const unnamed = line.replace(nameBefore, "");
  const bare = unnamed.replace(timeBefore, "");
  return bare === line ? [line] : [...new Set([bare, unnamed, line])];
}

/** How many lines are looked at to find out a format. */
const sampleLines = 100;

/** The requests of one log, nearly in the order of their times, in batches. */
export async function* requestsOf(source: LogSource, options: ReadOptions, tally: Tally): AsyncGenerator<LogRequest[]> {
  const buffer = new ReorderBuffer(options.reorder, options.keeps);
  const reader = new LogReader(source.name, options, tally, buffer);
  let bytes = 0;
  const told = (more: number): void => {
    bytes += more;
  };
  try {
    for await (const batch of linesOf(bytesOf(source, told))) {
      const full = reader.read(batch);
      if (full.length > 0) yield full;
      options.onProgress?.(bytes, batch.lines.length + batch.tooLong);
      bytes = 0;
    }
  } catch (error) {
    if (!isTruncation(error)) throw error;
    tally.problems.push(`${source.name} is damaged: ${(error as Error).message}. What could be read of it was replayed.`);
  }
  const rest = [...reader.decideFormat(), ...buffer.takeAll()];
  if (rest.length > 0) yield rest;
}

/** Reads the lines of one log, and adds its requests to a buffer. Several logs may share a buffer. */
export class LogReader {
  readonly #name: string;
  readonly #options: ReadOptions;
  readonly #tally: Tally;
  readonly #buffer: ReorderBuffer;
  readonly #addresses = new Copies();
  #format: LogFormat | undefined;
  /** The first lines, until the format is known. */
  #sample: string[] = [];

  constructor(name: string, options: ReadOptions, tally: Tally, buffer: ReorderBuffer) {
    this.#name = name;
    this.#options = options;
    this.#tally = tally;
    this.#buffer = buffer;
    this.#format = options.format === undefined ? undefined : formatOf(options.format, { address: options.address });
    if (this.#format !== undefined) tally.formats.set(name, this.#format.name);
  }

  /** Reads lines. Returns the requests for which the buffer has no room any more. */
  read({ lines, tooLong }: LineBatch): LogRequest[] {
    this.#tally.skip("too-long", tooLong);
    if (this.#format !== undefined) return this.#add(lines, this.#format);
    this.#sample = this.#sample.concat(lines);
    return this.#sample.length >= sampleLines ? this.decideFormat() : [];
  }

  /** Finds out the format from the lines so far, if it is not known, and adds their requests. */
  decideFormat(): LogRequest[] {
    if (this.#sample.length === 0) return [];
    const sample = this.#sample;
    this.#sample = [];
    this.#format = found(this.#name, sample, this.#options, this.#tally);
    return this.#add(sample, this.#format);
  }

  #add(lines: readonly string[], format: LogFormat): LogRequest[] {
    const full: LogRequest[] = [];
    for (const line of lines) {
      let parsed: ReturnType<LogFormat["parse"]> = "malformed";
      for (const part of barest(line)) {
        parsed = format.parse(part);
        if (parsed !== "malformed" && parsed !== "no-time") break;
      }
      if (typeof parsed === "string") {
        this.#tally.skip(parsed);
        continue;
      }
      this.#tally.lines++;
      this.#tally.requests++;
      const address = parsed.address === undefined ? undefined : this.#addresses.of(parsed.address);
      this.#buffer.add(parsed, address, line.length);
      while (this.#buffer.isFull) full.push(this.#buffer.take() as LogRequest);
    }
    return full;
  }
}

/** The format of these lines. If none is known, each line is malformed, and the tally says so. */
function found(name: string, lines: readonly string[], options: ReadOptions, tally: Tally): LogFormat {
  const full = lines.filter((line) => line.trim() !== "").slice(0, sampleLines);
  const detect = (i: number): LogFormat | undefined => {
    const parts = full.flatMap((line) => barest(line)[i] ?? []);
    return detectFormat(parts, options);
  };
  const format = detect(0) ?? detect(1) ?? detect(2);
  if (format !== undefined) {
    tally.formats.set(name, format.name);
    return format;
  }
  const [first] = full;
  // Every second byte of a log in UTF-16 is zero.
  if (first !== undefined && first.split("\0").length - 1 > first.length / 3) {
    tally.problems.push(
      `${name} is in UTF-16. Convert it to UTF-8: iconv -f UTF-16 -t UTF-8 <log> | floodgate simulate - (and your options).`,
    );
  } else if (first !== undefined) {
    tally.problems.push(
      `${name} is in no format that is known. It begins with ${JSON.stringify(first.slice(0, 80))}. The formats are ${formatNames.join(", ")}. Write another as in nginx's log_format: --format '$remote_addr [$time_local] "$request"'.`,
    );
  }
  return unknownFormat;
}

const unknownFormat: LogFormat = {
  name: "unknown",
  parse: (line) => (isBlank(line) ? "blank" : "malformed"),
  fit: () => 0,
  field: () => undefined,
  header: () => undefined,
};

/** Whether a compressed log is damaged, or ends too soon. */
function isTruncation(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" && /^Z_|^ZSTD_|^ERR_ZSTD/.test(code);
}
