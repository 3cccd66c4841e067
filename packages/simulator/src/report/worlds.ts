import type { Decision } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import type { LogRequest } from "../formats/log-format.js";
import { Replay } from "../replay/replay.js";
import type { ReplayOptions } from "../replay/replay-logs.js";
import type { CountedRequest, LaneDecision } from "./lanes.js";

/** The rules with one of them changed, replayed by a middleware of their own. The requests come from the caller. */
export class World {
  readonly #replay: Replay;
  /** What the changed rule has made of the current request. */
  #decision: LaneDecision | undefined;

  constructor(set: RuleSet, rule: PlainRule, changed: PlainRule, options: ReplayOptions) {
    const rules = set.rules.map((each) => (each === rule ? changed : each));
    this.#replay = new Replay({ ...set, rules }, options);
    this.#replay.onDecision = (key, { name, allowed, limit, remaining, cost }: Decision) => {
      if (name === rule.name) this.#decision = { key, allowed, limit, remaining, cost };
    };
  }

  /** Returns what the changed rule decides; undefined if the request does not count for it. */
  decide(_counted: readonly CountedRequest[], _nowMs: number, request: LogRequest): LaneDecision | undefined {
    this.#decision = undefined;
    this.#replay.decide(request);
    return this.#decision;
  }

  close(): void {
    this.#replay.close();
  }
}
