import type { Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import type { Decision } from "@floodgate/core/store";
import type { LogRequest } from "../formats/log-format.js";
import { grows, KeyStates, widthOf } from "../measure/key-states.js";
import { Replay, type ReplayOptions } from "../replay/replay.js";

/** The most cells of state that the lanes of one rule may need: 256 MB. */
const maxCells = 2 ** 25;

/** A request as one rule counts it. */
export interface CountedRequest {
  /** The number of the rule. */
  readonly rule: number;
  readonly key: string;
  /** Clients are numbered by what they need of the rule, the greatest first. */
  readonly client: number;
  readonly cost: number;
}

/** A rule as a lane decides it. */
export interface LaneRule {
  readonly number: number;
  readonly isShadow: boolean;
  readonly policy: Policy;
  /** What its clients need, the greatest first. */
  readonly descending: Float64Array;
  /** How many of these clients it may limit. */
  readonly clients: number;
}

/** What a lane makes of a request. */
export interface LaneDecision extends Pick<Decision, "allowed" | "limit" | "remaining"> {
  readonly key: string;
  readonly cost: number;
}

const rejectedByZero = { allowed: false, limit: 0, remaining: 0 } as const;

/**
 * A rule under one limit, and the rules beside it that may reject its requests. It decides only the requests of clients that need more than
 * a limit: the others are never limited, and change nothing for anybody else.
 */
export class Lane {
  readonly #own: LaneRule;
  /** By the number of the rule. */
  readonly #states: KeyStates[] = [];
  readonly #hasZero: boolean;

  constructor(own: LaneRule, beside: readonly LaneRule[]) {
    const all = [own, ...beside];
    this.#own = own;
    for (const each of all) this.#states[each.number] = new KeyStates(each.policy, each.clients);
    this.#hasZero = all.some(({ policy }) => policy.quota === 0);
  }

  /**
   * Decides a request as `consumeAll` of a store does: all rules that count it are charged, or none.
   * @returns what the own rule decides; undefined if it never limits the client, or if the request does not count for it.
   */
  decide(counted: readonly CountedRequest[], nowMs: number): LaneDecision | undefined {
    const fitting = counted.filter(({ rule, client }) => client < (this.#states[rule]?.keys ?? 0));
    const asked = this.#hasZero ? this.#decisive(fitting) : fitting;
    let commits = asked.length === 1;
    let decisions = asked.map((each) => this.#decide(each, nowMs, commits));
    if (asked.length > 1) {
      commits = asked.every((each, i) => decisions[i]?.allowed === true || !this.#isEnforced(each));
      // A rejection is committed too: a log may count it.
      decisions = decisions.map((decision, i) =>
        commits || !decision.allowed ? this.#decide(asked[i] as CountedRequest, nowMs, true) : decision,
      );
    }
    const at = asked.findIndex(({ rule }) => rule === this.#own.number);
    const decision = decisions[at];
    if (decision === undefined || (decision.allowed && !commits)) return undefined;
    const { key, cost } = asked[at] as CountedRequest;
    return { ...decision, key, cost };
  }

  /** An enforced limit of 0 rejects a request by itself. */
  #decisive(asked: readonly CountedRequest[]): readonly CountedRequest[] {
    const zeros = asked.filter(({ rule }) => this.#states[rule]?.policy.quota === 0);
    return zeros.some((each) => this.#isEnforced(each)) ? zeros : asked;
  }

  #isEnforced({ rule }: CountedRequest): boolean {
    return rule !== this.#own.number || !this.#own.isShadow;
  }

  #decide({ rule, client, cost }: CountedRequest, nowMs: number, commit: boolean): Omit<LaneDecision, "key" | "cost"> {
    const states = this.#states[rule] as KeyStates;
    return states.policy.quota === 0 ? rejectedByZero : states.decide(client, nowMs, cost, commit);
  }
}

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

/** The lanes whose states fit into memory together. Until they fit, every second one is dropped, and the rule's own limit last. */
export function fitting(own: readonly LaneRule[], limit: number, beside: readonly LaneRule[]): readonly LaneRule[] {
  const others = cellsOf(beside);
  let kept = own;
  while (kept.length > 0 && cellsOf(kept) + kept.length * others > maxCells) {
    if (kept.length === 1) return [];
    const fewer = kept.filter(({ policy }, i) => i % 2 === 1 || policy.quota === limit);
    kept = fewer.length < kept.length ? fewer : kept.filter(({ policy }) => policy.quota === limit);
  }
  return kept;
}

function cellsOf(rules: readonly LaneRule[]): number {
  let cells = 0;
  for (const { policy, descending, clients } of rules) {
    const width = widthOf(policy);
    if (!grows(policy)) cells += clients * width;
    else for (let i = 0; i < clients; i++) cells += width + 2 * Math.min(policy.quota, descending[i] as number);
  }
  return cells;
}
