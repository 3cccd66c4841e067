import type { Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import type { LogRequest } from "../formats/log-format.js";
import { Tally } from "../read/tally.js";
import { type AppFields, Replay } from "../replay/replay.js";
import type { LaneCounts } from "./lanes.js";
import { Needs } from "./needs.js";
import { policyWords, withoutLimit } from "./policies.js";

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

  constructor(set: RuleSet, rule: PlainRule, policy: Policy, intervals: number, options: AppFields, maxClients: number) {
    this.policy = policy;
    this.limitedAt = new Uint32Array(intervals);
    const rules = set.rules.map((each) => (each === rule ? withPolicy(rule, policy) : each));
    this.#replay = new Replay({ ...set, rules }, options, maxClients, new Tally());
    this.#replay.onDecision = (key, decision) => {
      if (decision.name !== rule.name || decision.allowed) return;
      this.limited++;
      (this.limitedAt[this.#interval] as number)++;
      if (this.#touched.size < maxClients) this.#touched.add(key);
    };
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

/** A rule without its limit, beside the other rules as they are: what its clients need there. */
export class WorldWithoutLimit {
  readonly needs: Needs;
  readonly #replay: Replay;

  constructor(set: RuleSet, rule: PlainRule, policy: Policy, options: AppFields, maxClients: number) {
    this.needs = new Needs(policy, maxClients);
    const rules = set.rules.map((each) => (each === rule ? withoutLimit(rule, policy) : each));
    this.#replay = new Replay({ ...set, rules }, options, maxClients, new Tally());
    this.#replay.onDecision = (key, decision) => {
      if (decision.name === rule.name) this.needs.see(key, decision, this.#replay.nowMs);
    };
  }

  decide(request: LogRequest): void {
    this.#replay.decide(request);
  }

  close(): void {
    this.#replay.close();
  }
}

function withPolicy({ limit: _limit, window: _window, ...rule }: PlainRule, policy: Policy): PlainRule {
  return { ...rule, policy: policyWords(policy) as unknown as NonNullable<PlainRule["policy"]> };
}
