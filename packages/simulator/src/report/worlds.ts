import type { Decision, Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import type { LogRequest } from "../formats/log-format.js";
import { defaultMaxClients, Replay } from "../replay/replay.js";
import type { ReplayOptions } from "../replay/replay-logs.js";
import type { LaneCounts } from "./lanes.js";
import { withPolicy } from "./policies.js";

/**
 * One limit of a rule beside other rules that reject requests too, or with a ban or plans: all of it is replayed, by a middleware of its
 * own. Requests whose clients no rule can reject here are left out by the caller.
 */
export class World implements LaneCounts {
  readonly policy: Policy;
  limited = 0;
  readonly limitedAt: Uint32Array;
  readonly #replay: Replay;
  readonly #touched = new Set<string>();
  #interval = 0;

  constructor(set: RuleSet, rule: PlainRule, policy: Policy, intervals: number, options: ReplayOptions) {
    const { maxClients = defaultMaxClients } = options;
    this.policy = policy;
    this.limitedAt = new Uint32Array(intervals);
    this.#replay = replayWith(set, rule, withPolicy(rule, policy), options, (key, { allowed }) => {
      if (allowed) return;
      this.limited++;
      (this.limitedAt[this.#interval] as number)++;
      if (this.#touched.size < maxClients) this.#touched.add(key);
    });
  }

  get clientsLimited(): number {
    return this.#touched.size;
  }

  decide(request: LogRequest, interval: number): void {
    this.#interval = interval;
    this.#replay.decide(request);
  }

  close(): void {
    this.#replay.close();
  }
}

/** The rules with one of them changed. What it decides is told; the requests come from the caller. */
export function replayWith(
  set: RuleSet,
  rule: PlainRule,
  changed: PlainRule,
  options: ReplayOptions,
  onDecision: (key: string, decision: Decision, nowMs: number) => void,
): Replay {
  const rules = set.rules.map((each) => (each === rule ? changed : each));
  const replay = new Replay({ ...set, rules }, options);
  replay.onDecision = (key, decision) => {
    if (decision.name === rule.name) onDecision(key, decision, replay.nowMs);
  };
  return replay;
}
