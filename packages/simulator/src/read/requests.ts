import { detectFormat, type FormatOptions, formatNames, formatOf } from "../formats/known.js";
import type { LogFormat, LogRequest } from "../formats/log-format.js";
import { isBlank } from "../formats/pattern.js";
import { Copies } from "./copies.js";
import { linesOf } from "./lines.js";
import { type Kept, ReorderBuffer } from "./reorder.js";
import { bytesOf, type LogSource } from "./source.js";
import type { Tally } from "./tally.js";

export interface ReadOptions extends FormatOptions {
  /** The name or pattern of the format. Default: found out for each log. */
  readonly format?: string | undefined;
  /** How many requests are sorted by time at once. */
  readonly reorder: number;
  readonly keeps: Kept;
  /** Called with the bytes of each log that were read, and with lines. */
  readonly onProgress?: ((bytes: number, lines: number) => void) | undefined;
}

/** How many lines are looked at to find out a format. */
const sampleLines = 100;

/** The requests of one log, nearly in the order of their times, in batches. */
export async function* requestsOf(source: LogSource, options: ReadOptions, tally: Tally): AsyncGenerator<LogRequest[]> {
  const buffer = new ReorderBuffer(options.reorder, options.keeps);
  const addresses = new Copies();
  let format = options.format === undefined ? undefined : formatOf(options.format, options);
  if (format !== undefined) tally.formats.set(source.name, format.name);
  let sample: string[] = [];
  let bytes = 0;
  const told = (more: number): void => {
    bytes += more;
  };
  const add = (lines: readonly string[], known: LogFormat): LogRequest[] => {
    const batch: LogRequest[] = [];
    for (const line of lines) {
      const parsed = known.parse(line);
      if (typeof parsed === "string") {
        tally.skip(parsed);
        continue;
      }
      tally.lines++;
      tally.requests++;
      buffer.add(parsed, parsed.address === undefined ? undefined : addresses.of(parsed.address), line.length);
      while (buffer.isFull) batch.push(buffer.take() as LogRequest);
    }
    return batch;
  };
  try {
    for await (const { lines, tooLong } of linesOf(bytesOf(source, told))) {
      tally.skip("too-long", tooLong);
      const unknown: string[] | undefined = format === undefined ? sample.concat(lines) : undefined;
      if (unknown !== undefined && unknown.length < sampleLines) sample = unknown;
      else {
        format ??= found(source, unknown ?? [], options, tally);
        sample = [];
        const batch = add(unknown ?? lines, format);
        if (batch.length > 0) yield batch;
      }
      options.onProgress?.(bytes, lines.length + tooLong);
      bytes = 0;
    }
  } catch (error) {
    if (!isTruncation(error)) throw error;
    tally.problems.push(`${source.name} is damaged: ${(error as Error).message}. What could be read of it was replayed.`);
  }
  if (sample.length > 0) {
    const batch = add(sample, found(source, sample, options, tally));
    if (batch.length > 0) yield batch;
  }
  const rest: LogRequest[] = [];
  for (let next = buffer.take(); next !== undefined; next = buffer.take()) rest.push(next);
  if (rest.length > 0) yield rest;
}

/** The format of these lines. If none is known, each line is malformed, and the tally says so. */
function found(source: LogSource, lines: readonly string[], options: ReadOptions, tally: Tally): LogFormat {
  const full = lines.filter((line) => line.trim() !== "").slice(0, sampleLines);
  const format = detectFormat(full, options);
  if (format !== undefined) {
    tally.formats.set(source.name, format.name);
    return format;
  }
  const [first] = full;
  if (first !== undefined) {
    tally.problems.push(
      `${source.name} is in no format that is known. It begins with ${JSON.stringify(first.slice(0, 80))}. The formats are ${formatNames.join(", ")}. Write another as in nginx's log_format: --format '$remote_addr [$time_local] "$request"'.`,
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

/** The earliest time among the first lines of a log; undefined if it has no request. */
export async function firstTimeOf(source: LogSource, options: ReadOptions, tally: Tally): Promise<number | undefined> {
  for await (const batch of requestsOf(source, { ...options, reorder: 1000, onProgress: undefined }, tally)) return batch[0]?.timeMs;
  return undefined;
}
