import { setTimeout as sleep } from "node:timers/promises";
import type { RuleSet } from "@floodgate/core/rules";
import type { LogRequest } from "../formats/log-format.js";
import { ReorderBuffer } from "../read/reorder.js";
import { LogReader } from "../read/requests.js";
import { Replay } from "../replay/replay.js";
import { readingOf } from "../replay/replay-logs.js";
import { measuring, type SimulateOptions, type Simulation, simulationOf } from "../simulate.js";
import { type Growing, GrowingStream } from "./tail.js";

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
        // The lines of a log that was just read to its end. More may come all the time.
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
