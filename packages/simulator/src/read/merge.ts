import type { LogRequest } from "../formats/log-format.js";
import { firstTimeOf, type ReadOptions, requestsOf } from "./requests.js";
import type { LogSource } from "./source.js";
import { Tally } from "./tally.js";

/** A log that is being read. */
interface Reading {
  readonly batches: AsyncGenerator<LogRequest[]>;
  batch: LogRequest[];
  at: number;
}

/**
 * The requests of several logs in the order of their times: the logs of several servers, or the rotated ones of one, in any order. A log
 * is opened when its first time comes.
 */
export async function* readLogs(sources: readonly LogSource[], options: ReadOptions, tally: Tally): AsyncGenerator<LogRequest[]> {
  const [first, ...others] = sources;
  if (first === undefined) return;
  if (others.length === 0) {
    yield* requestsOf(first, options, tally);
    return;
  }
  const waiting = await byFirstTime(sources, options);
  const open: Reading[] = [];
  const begin = async (source: LogSource): Promise<void> => {
    const reading: Reading = { batches: requestsOf(source, options, tally), batch: [], at: 0 };
    if (await fill(reading)) open.push(reading);
  };
  while (open.length > 0 || waiting.length > 0) {
    while (waiting[0] !== undefined && waiting[0].firstMs <= lowest(open)) await begin((waiting.shift() as { source: LogSource }).source);
    const untilMs = waiting[0]?.firstMs ?? Number.POSITIVE_INFINITY;
    const batch = mergeUntil(open, untilMs);
    if (batch.length > 0) yield batch;
    for (const reading of [...open]) {
      if (reading.at >= reading.batch.length && !(await fill(reading))) open.splice(open.indexOf(reading), 1);
    }
  }
}

/** Takes requests in order, until one log's batch is used up or a time comes at which another log begins. */
function mergeUntil(open: readonly Reading[], untilMs: number): LogRequest[] {
  const merged: LogRequest[] = [];
  for (;;) {
    let earliest: Reading | undefined;
    for (const reading of open) {
      if (reading.at >= reading.batch.length) return merged;
      if (earliest === undefined || timeOf(reading) < timeOf(earliest)) earliest = reading;
    }
    if (earliest === undefined || timeOf(earliest) >= untilMs) return merged;
    merged.push(earliest.batch[earliest.at++] as LogRequest);
  }
}

function timeOf({ batch, at }: Reading): number {
  return (batch[at] as LogRequest).timeMs;
}

function lowest(open: readonly Reading[]): number {
  return Math.min(Number.POSITIVE_INFINITY, ...open.map(timeOf));
}

async function fill(reading: Reading): Promise<boolean> {
  const { done, value } = await reading.batches.next();
  if (done === true) return false;
  reading.batch = value;
  reading.at = 0;
  return true;
}

/** The logs by their first times. What can be read only once comes first. */
async function byFirstTime(sources: readonly LogSource[], options: ReadOptions): Promise<{ source: LogSource; firstMs: number }[]> {
  const known: { source: LogSource; firstMs: number }[] = [];
  for (const source of sources) {
    const firstMs = source.once === true ? undefined : await firstTimeOf(source, options, new Tally());
    known.push({ source, firstMs: firstMs ?? Number.NEGATIVE_INFINITY });
  }
  return known.sort((a, b) => a.firstMs - b.firstMs || sources.indexOf(a.source) - sources.indexOf(b.source));
}
