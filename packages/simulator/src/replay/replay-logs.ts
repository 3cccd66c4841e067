import type { DecisionEvent, EventListener, FloodgateEvent } from "@floodgate/core";
import type { RuleSet } from "@floodgate/core/rules";
import { readLogs } from "../read/merge.js";
import type { ReadOptions } from "../read/requests.js";
import type { LogSource } from "../read/source.js";
import type { Tally } from "../read/tally.js";
import { type AppFields, appNames, headersOf, Replay } from "./replay.js";

export interface ReplayOptions extends AppFields {
  /** The name of the log's format, or a pattern in the syntax of nginx's `log_format`. Default: found out for each log. */
  readonly format?: string | undefined;
  /** The field that holds the client's address. Default: the usual one of the format. */
  readonly address?: string | undefined;
  /** How many requests are sorted by their times at once. Default 10,000. */
  readonly reorder?: number | undefined;
  /** The most clients that are measured for each rule, and that the store holds for it. It bounds the memory. Default 1,000,000. */
  readonly maxClients?: number | undefined;
  /** Called now and then with the bytes and the lines that were read since the last call. */
  readonly onProgress?: ((bytes: number, lines: number) => void) | undefined;
}

export const defaultMaxClients = 1_000_000;
const defaultReorder = 10_000;

/**
 * Replays logs.
 * @param listen returns the listener of the replay's events.
 */
export async function replayLogs(
  sources: readonly LogSource[],
  set: RuleSet,
  options: ReplayOptions,
  tally: Tally,
  listen: (replay: Replay) => EventListener,
): Promise<Replay> {
  const replay = new Replay(set, options, options.maxClients ?? defaultMaxClients, tally);
  replay.onEvent = listen(replay);
  try {
    for await (const batch of readLogs(sources, readingOf(set, options), tally)) {
      for (const request of batch) replay.decide(request);
    }
  } finally {
    replay.close();
  }
  return replay;
}

/** How logs are read for these rules. */
export function readingOf(set: RuleSet, options: ReplayOptions): ReadOptions {
  return { ...options, reorder: options.reorder ?? defaultReorder, keepsLines: readsFields(set, options) };
}

function readsFields(set: RuleSet, { plan }: AppFields): boolean {
  const { keys, costs } = appNames(set);
  return plan !== undefined || keys.length > 0 || costs.length > 0 || headersOf(set).length > 0;
}

export function isDecision(event: FloodgateEvent): event is DecisionEvent {
  switch (event.type) {
    case "allowed":
    case "limited":
    case "shadow-limited":
    case "delayed":
    case "degraded":
      return true;
    default:
      return false;
  }
}
