import TinyQueue from "tinyqueue";
import type { LogRequest } from "../formats/log-format.js";
import { type ReadOptions, requestsOf, Tally } from "./requests.js";
import type { LogSource } from "./source.js";

/** A log that is read, or will be. */
interface Reading {
  readonly batches: AsyncGenerator<LogRequest[]>;
  /** In the order of first times. */
  readonly number: number;
  batch: readonly LogRequest[];
  at: number;
  isOpen: boolean;
  /** The time of its next request. A log whose batch is used up comes first, to get another one. */
  nextMs: number;
}

/**
 * The requests of several logs in the order of their times: the logs of several servers, or the rotated ones of one, in any order. A log
 * is opened when its first time comes.
 */
export async function* readLogs(sources: readonly LogSource[], options: ReadOptions, tally: Tally): AsyncGenerator<LogRequest[]> {
  const readings = (await byFirstTime(sources, options)).map(([source, nextMs], number): Reading => {
    return { batches: requestsOf(source, options, tally), number, batch: [], at: 0, isOpen: false, nextMs };
  });
  const queue = new TinyQueue([...readings], (a, b) => a.nextMs - b.nextMs || Number(a.isOpen) - Number(b.isOpen) || a.number - b.number);
  let merged: LogRequest[] = [];
  try {
    for (let log = queue.pop(); log !== undefined; log = queue.pop()) {
      const next = log.batch[log.at++];
      if (next !== undefined) merged.push(next);
      else {
        if (merged.length > 0) yield merged;
        merged = [];
        const { done, value } = await log.batches.next();
        if (done === true) continue;
        Object.assign(log, { batch: value, at: 0, isOpen: true });
      }
      log.nextMs = log.batch[log.at]?.timeMs ?? Number.NEGATIVE_INFINITY;
      queue.push(log);
    }
  } finally {
    // The caller may stop before the end, for example if the newest line is the first.
    for (const { batches } of readings) await batches.return(undefined);
  }
}

/** The logs by their first times. What can be read only once comes first. */
async function byFirstTime(sources: readonly LogSource[], options: ReadOptions): Promise<[source: LogSource, firstMs: number][]> {
  const known: [LogSource, number][] = [];
  for (const source of sources) {
    const isFirst = sources.length === 1 || source.once === true;
    known.push([source, (isFirst ? undefined : await firstTimeOf(source, options)) ?? Number.NEGATIVE_INFINITY]);
  }
  return known.sort(([, a], [, b]) => a - b || 0);
}

/** The earliest time among the first lines of a log; undefined if it has no request. */
async function firstTimeOf(source: LogSource, options: ReadOptions): Promise<number | undefined> {
  const first = requestsOf(source, { ...options, reorder: 1000, onProgress: undefined }, new Tally());
  for await (const [earliest] of first) return earliest?.timeMs;
  return undefined;
}
