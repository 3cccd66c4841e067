import { FloodgateError, type FloodgateEvent } from "@floodgate/core";
import { getOrMake } from "@floodgate/core/adapter";
import { type RequestResult, resultOf } from "@floodgate/core/rules";
import type { KeyBlock } from "@floodgate/core/store";
import { LRUCache } from "lru-cache";
import {
  type History,
  type Range,
  type Result,
  type RuleHistory,
  type RuleTotals,
  rejections,
  results,
  wholeRequests,
} from "../contract.js";
import { Bursts } from "./bursts.js";
import type { StoreCounts } from "./latencies.js";
import { RecentKeys } from "./recent-keys.js";
import { firstStep, ranges } from "./ring.js";
import { RuleCounts } from "./rule-counts.js";
import { ruleKey } from "./sketch.js";

/** Rules with counts of their own. A rule takes up to 7.5 kB of history for each result that occurs. */
export const maxRules = 200;
export const otherRules = "(other rules)";

/** In seconds. A clock that steps back further was wrong before, or is now: all history begins again. */
const longestStepBack = 60;

/**
 * Counts the events of one process, in bounded memory: at most 14 MB of history for 200 rules, and two megabytes of keys.
 * A second's counts are in the history once it has ended.
 */
export class Collector {
  sinceMs = 0;
  /** Requests in the last second that has ended. */
  perSecond = 0;
  readonly #clock: () => number;
  #rules = new Map<string, RuleCounts>();
  /** Each request once. */
  #whole = new RuleCounts(wholeRequests);
  /** The blocks and bans of keys that were rejected for them: far more keys than the page shows. A key that is not remembered has no mark. */
  readonly #blocks = new LRUCache<string, KeyBlock>({ max: 1000 });
  #bursts = new Bursts();
  #second = 0;
  requests: RecentKeys = new RecentKeys(0);
  rejections: RecentKeys = new RecentKeys(0);
  readonly #storeOf: (rule: string | undefined) => StoreCounts;

  constructor(clock: () => number, storeOf: (rule: string | undefined) => StoreCounts) {
    this.#clock = clock;
    this.#storeOf = storeOf;
    this.#startAnew(clock());
  }

  readonly listen = (event: FloodgateEvent): void => {
    switch (event.type) {
      case "allowed":
      case "limited":
      case "shadow-limited":
      case "delayed":
      case "degraded": {
        const nowMs = this.moveToNow();
        const { name, key, decision } = event;
        const rule = this.#rule(name);
        const result = resultOf(event);
        rule.add(result);
        rule.asked += decision.cost;
        rule.charged += event.charged;
        this.requests.add(rule.rule, key);
        if (!decision.allowed && result !== "failed-open") this.rejections.add(rule.rule, key);
        // Without the store, nobody knows whether the key is blocked.
        if (!decision.degraded) this.#noteBlock(rule.rule, key, decision.blocked);
        // A store in this process is not timed.
        if (event.storeMs > 0) this.#storeOf(name).latencies.add(event.storeMs, nowMs);
        return;
      }
      case "exempt":
      case "missing-key":
        this.moveToNow();
        this.#rule(event.name).add(event.type === "missing-key" && !event.rejected ? "exempt" : event.type);
        return;
      case "request":
        this.moveToNow();
        if (event.replaces !== undefined) this.#whole.takeBack(shownResult(event.replaces.result));
        this.#whole.add(shownResult(event.result));
        return;
      case "unblocked":
      case "reset":
        this.#noteBlock(event.name, event.key, undefined);
        return;
      case "banned":
        this.#rule(event.name).bans++;
        return;
      case "evicted":
        this.#storeOf(event.name).evictions++;
        return;
      case "store-error":
        this.#storeOf(undefined).fail(event.error instanceof FloodgateError ? event.error.code : "other");
        return;
    }
  };

  /** In the order in which the rules had their first event. */
  totals(): RuleTotals[] {
    return this.#all().map((rule) => rule.totals());
  }

  /** @param extra how many older steps there are before the range; at most `maxExtra`. */
  history(range: Range, extra = 0): History {
    const nowMs = this.moveToNow();
    const { stepMs } = ranges[range];
    const points = ranges[range].points + extra;
    const first = firstStep(range, nowMs) - extra;
    const rules = this.#all()
      .map((rule) => rule.history(range, first, points))
      .filter((history): history is RuleHistory => history !== undefined);
    return { range, startMs: first * stepMs, stepMs, points, rules, bursts: this.#bursts.read(range, nowMs) };
  }

  /** The block or ban of a key that was rejected for it. */
  blockOf(rule: string, key: string): KeyBlock | undefined {
    return this.#blocks.get(ruleKey(rule, key));
  }

  /** @param block undefined if the key is not blocked now. */
  #noteBlock(rule: string, key: string, block: KeyBlock | undefined): void {
    if (block !== undefined) this.#blocks.set(ruleKey(rule, key), block);
    else if (this.#blocks.size > 0) this.#blocks.delete(ruleKey(rule, key));
  }

  /** Whole requests, if there were any, and the rules. */
  #all(): RuleCounts[] {
    return this.#whole.isUsed ? [this.#whole, ...this.#rules.values()] : [...this.#rules.values()];
  }

  #rule(name: string): RuleCounts {
    const counted = this.#rules.size < maxRules || this.#rules.has(name) ? name : otherRules;
    return getOrMake(this.#rules, counted, () => new RuleCounts(counted));
  }

  /** Ends the seconds that are over, so that everything that is read is up to date. Returns the time. */
  moveToNow(): number {
    const nowMs = this.#clock();
    const second = Math.floor(nowMs / 1000);
    if (second > this.#second) this.#end(second);
    else if (second < this.#second - longestStepBack) this.#startAnew(nowMs);
    return nowMs;
  }

  /** Ends the current second, and those up to `next` in which nothing happened. */
  #end(next: number): void {
    const second = this.#second;
    const requests = this.#whole.inSecond(results);
    this.perSecond = next === second + 1 ? requests : 0;
    this.#bursts.add(second, requests, this.#whole.inSecond(rejections));
    for (const rule of this.#all()) rule.endSecond(second);
    this.#second = next;
    this.requests.moveTo(next * 1000);
    this.rejections.moveTo(next * 1000);
  }

  #startAnew(nowMs: number): void {
    this.#rules = new Map();
    this.#whole = new RuleCounts(wholeRequests);
    this.#bursts = new Bursts();
    this.perSecond = 0;
    this.sinceMs = nowMs;
    this.#second = Math.floor(nowMs / 1000);
    this.requests = new RecentKeys(nowMs);
    this.rejections = new RecentKeys(nowMs);
  }
}

/** The page tells fewer results apart. */
function shownResult(result: RequestResult): Result {
  return result === "skipped" || result === "uncounted" ? "exempt" : result;
}
