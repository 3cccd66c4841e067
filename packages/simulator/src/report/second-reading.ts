import type { RuleSet } from "@floodgate/core/rules";
import { readLogs } from "../read/merge.js";
import type { LogSource } from "../read/source.js";
import type { Clients } from "../replay/clients.js";
import { Replay } from "../replay/replay.js";
import { type ReplayOptions, readingOf } from "../replay/replay-logs.js";
import type { BurstWatch } from "./burst.js";
import type { Timeline } from "./contract.js";
import type { Lane } from "./lanes.js";
import type { Needs } from "./needs.js";
import { type SurveyedRule, withoutLimits } from "./policies.js";
import type { World } from "./worlds.js";

/** A rule, and the limits under which it is tried. */
export interface Tried {
  readonly rule: SurveyedRule;
  readonly needs: Needs;
  /** What the clients need, the greatest first, and the place of each client in that order. */
  readonly descending: Float64Array;
  readonly rankOf: Uint32Array;
  /** A rule has lanes if no other rule depends on what it rejects; else worlds. */
  readonly lanes: readonly Lane[];
  readonly worlds: readonly World[];
  /** The rule without its limit beside the other rules, and what its clients need there. */
  readonly withoutLimit: { readonly needs: Needs; readonly replay: Replay } | undefined;
  readonly burst: BurstWatch | undefined;
}

/**
 * Replays the logs under the rules as they are, and decides the requests that a rule counts in its lanes. The worlds get the requests that
 * they could decide otherwise: those of a client that needs more than a limit.
 * @returns the clients, to show their names.
 */
export async function secondReading(
  sources: readonly LogSource[],
  set: RuleSet,
  options: ReplayOptions,
  tried: readonly Tried[],
  { startMs, stepMs }: Timeline,
): Promise<Clients> {
  const first = startMs / stepMs;
  let interval = 0;
  const byName = new Map(tried.map((each) => [each.rule.name, each]));
  const replay = new Replay(set, options);
  replay.onDecision = (key, { name, cost }) => {
    const { needs, rankOf, lanes, burst } = byName.get(name) as Tried;
    if (lanes.length === 0) return;
    if (burst?.key === key) burst.see(replay.nowMs, cost);
    const client = needs.clientOf(key);
    if (client < 0) return;
    const rank = rankOf[client] as number;
    // The lowest limit is the first. Who does not need more than one does not need more than those after it.
    for (const lane of lanes) {
      if (rank >= lane.clients) return;
      lane.decide(rank, replay.nowMs, cost, interval);
    }
  };
  const worlds = tried.some((each) => each.worlds.length > 0) ? new Worlds(set, options, tried) : undefined;
  for await (const batch of readLogs(sources, readingOf(set, options), replay.tally)) {
    for (const request of batch) {
      interval = Math.floor(Math.max(replay.nowMs, request.timeMs) / stepMs) - first;
      replay.decide(request);
      worlds?.decide(request, interval);
    }
  }
  replay.close();
  worlds?.close();
  return replay.clients;
}

class Worlds {
  readonly #tried: readonly Tried[];
  readonly #replay: Replay;
  /** What the clients of the current request need of each rule. */
  readonly #needs: Float64Array;

  constructor(set: RuleSet, options: ReplayOptions, tried: readonly Tried[]) {
    this.#tried = tried;
    this.#needs = new Float64Array(tried.length);
    const numbers = new Map(tried.map(({ rule }, i) => [rule.name, i]));
    const rules = tried.map(({ rule }) => rule);
    this.#replay = new Replay(withoutLimits(set, rules), options);
    this.#replay.onDecision = (key, { name, cost }) => {
      const number = numbers.get(name) as number;
      const { rule, needs, burst, worlds } = tried[number] as Tried;
      if (worlds.length > 0 && burst?.key === key) burst.see(this.#replay.nowMs, cost);
      const client = needs.clientOf(key);
      // The policies of plans have limits of their own.
      this.#needs[number] = client < 0 || rule.hasMore ? Number.POSITIVE_INFINITY : needs.needOf(client);
    };
  }

  decide(request: Parameters<Replay["decide"]>[0], interval: number): void {
    this.#needs.fill(0);
    this.#replay.decide(request);
    let rejecting = 0;
    for (let i = 0; i < this.#tried.length; i++) if (this.#couldReject(i)) rejecting++;
    this.#tried.forEach(({ worlds, withoutLimit }, i) => {
      withoutLimit?.replay.decide(request);
      const others = rejecting - (this.#couldReject(i) ? 1 : 0);
      for (const world of worlds) {
        if (others > 0 || (this.#needs[i] as number) > world.policy.quota) world.decide(request, interval);
      }
    });
  }

  /** Whether a rule could reject the current request as it is. */
  #couldReject(i: number): boolean {
    const { rule } = this.#tried[i] as Tried;
    return !rule.isShadow && (this.#needs[i] as number) > rule.policy.quota;
  }

  close(): void {
    this.#replay.close();
    for (const { worlds, withoutLimit } of this.#tried) {
      withoutLimit?.replay.close();
      for (const world of worlds) world.close();
    }
  }
}
