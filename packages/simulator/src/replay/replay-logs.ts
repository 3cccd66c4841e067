import { formatDuration, invalidOption, type RuleSet } from "@floodgate/core/rules";
import type { LogRequest } from "../formats/log-format.js";
import { count, number } from "../print/numbers.js";
import { readLogs } from "../read/merge.js";
import type { Kept } from "../read/reorder.js";
import type { LogOptions, ReadOptions } from "../read/requests.js";
import type { LogSource } from "../read/source.js";
import type { Tally } from "../read/tally.js";
import { type AppFields, appNames, headersOf, type Replay } from "./replay.js";

export interface ReplayOptions extends AppFields, LogOptions {
  /** How many requests are sorted by their times at once. Default 10,000. */
  readonly reorder?: number | undefined;
  /** The most clients that are measured for each rule, and that the store holds for it. It bounds the memory. Default 1,000,000. */
  readonly maxClients?: number | undefined;
}

const defaultReorder = 10_000;
/** Requests out of order are told in a note up to this many, or up to this share of all. Above both, the numbers would be wrong. */
const maxLate = 100;
const maxLateShare = 0.01;

/**
 * Replays logs, and closes the replay.
 * @param decide is called with each request. Default: the replay decides it.
 * @throws FloodgateError if too many requests came after later ones.
 */
export async function replayLogs(
  sources: readonly LogSource[],
  set: RuleSet,
  options: ReplayOptions,
  replay: Replay,
  decide: (request: LogRequest) => void = (request) => replay.decide(request),
): Promise<void> {
  const reading = readingOf(set, options);
  const { tally } = replay;
  try {
    for await (const batch of readLogs(sources, reading, tally)) {
      for (const request of batch) decide(request);
      // A log with the newest line first need not be read to its end.
      if (tally.late > 10_000) checkOrder(sources, tally, reading.reorder);
    }
    checkOrder(sources, tally, reading.reorder);
  } finally {
    replay.close();
  }
}

/** @throws FloodgateError if too many requests came after later ones. */
function checkOrder(sources: readonly LogSource[], { late, latestMs, requests }: Tally, reorder: number): void {
  if (late <= maxLate || late <= maxLateShare * requests) return;
  const names = sources.map(({ name }) => name).join(", ");
  throw invalidOption(
    `${names}: ${count(late, "request")} of ${number(requests)} came after later ones, by up to ${formatDuration(latestMs)}, so a replay would count wrong. Sort the log by time first. If its newest line is the first, write: tac ${sources.length === 1 ? names : "<log>"} | floodgate simulate - (and your options). Or raise --reorder above ${number(reorder)}, if its lines are only mixed up.`,
  );
}

/** How logs are read for these rules. */
export function readingOf(set: RuleSet, options: ReplayOptions): ReadOptions {
  return { ...options, reorder: options.reorder ?? defaultReorder, keeps: keptFor(set, options) };
}

/** What the rules read of a request. */
function keptFor(set: RuleSet, { plan }: AppFields): Kept {
  const { keys, costs } = appNames(set);
  const lines = plan !== undefined || keys.length > 0 || costs.length > 0 || headersOf(set).length > 0;
  return { targets: set.rules.some(({ match, key }) => match !== undefined || [key].flat().includes("route")), lines };
}
