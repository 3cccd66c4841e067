import type { Decision, Policy } from "@floodgate/core";
import { type KeyIndex, Numbers, WindowSums } from "../measure/numbers.js";

type CountedDecision = Pick<Decision, "allowed" | "cost" | "limit" | "remaining">;

/**
 * What each client of a rule needs: the least limit under which it would never have been limited by this rule alone. The decisions come from
 * `measuringPolicy`.
 */
export class Needs {
  /** The numbers of the clients. May be shared with others that see the same requests. */
  readonly keys: KeyIndex;
  readonly #values = new Numbers();
  readonly #sums: WindowSums | undefined;
  /** Whether there were more clients than are measured. */
  isFull = false;
  /** The client that needs most, and when it did. */
  greatest: { readonly key: string; readonly atMs: number; readonly need: number } | undefined = undefined;

  constructor(policy: Policy, keys: KeyIndex) {
    this.keys = keys;
    this.#sums = policy.algorithm === "sliding-window-log" ? new WindowSums(policy.windowMs) : undefined;
  }

  needOf(client: number): number {
    return this.#values.get(client);
  }

  see(key: string, decision: CountedDecision, nowMs: number): void {
    const client = this.keys.of(key);
    if (client < 0) {
      this.isFull = true;
      return;
    }
    const need = this.#sums?.add(client, nowMs, decision.cost) ?? usedOf(decision);
    this.#values.raise(client, need);
    if (need > (this.greatest?.need ?? 0)) this.greatest = { key, atMs: nowMs, need };
  }

  /** All needs, the greatest first. */
  descending(): Float64Array {
    return this.#values.first(this.keys.size).sort().reverse();
  }

  /** The place of each client among all needs, the greatest first. */
  ranks(): Uint32Array {
    const order = Uint32Array.from({ length: this.keys.size }, (_, i) => i).sort((a, b) => this.needOf(b) - this.needOf(a));
    const ranks = new Uint32Array(order.length);
    order.forEach((client, rank) => {
      ranks[client] = rank;
    });
    return ranks;
  }
}

/** The units of its limit that a client has used; more than the limit if it was rejected. */
function usedOf({ allowed, limit, remaining }: CountedDecision): number {
  return allowed ? limit - remaining : limit + 1;
}

/** A value that at most a share of the clients is above. */
export interface Quantile {
  readonly value: number;
  /** How many clients are above it. */
  readonly above: number;
  /**
   * Where the value lies with 95 % confidence, if the clients are a sample of more that behave alike. `high` is undefined if it may be above
   * all that were seen.
   */
  readonly low: number;
  readonly high: number | undefined;
}

/**
 * The least of these values that at most `share` of them are above, as order statistics say, without assuming any distribution.
 * @param descending the values of all clients, the largest first; at least one.
 */
export function leastValue(descending: Float64Array, share: number): Quantile {
  const count = descending.length;
  // 0.1 % of 3000 is 3, also if floating-point arithmetic says 2.9999999999999996.
  const mayBeAbove = Math.min(count - 1, Math.floor(count * share + 1e-9));
  const value = descending[mayBeAbove] as number;
  const [fewest, most] = likelyCount(count, share);
  return {
    value,
    above: countAbove(descending, value),
    low: descending[Math.min(count - 1, most)] as number,
    high: fewest === 0 ? undefined : descending[fewest - 1],
  };
}

/** How many of the values are above one. */
export function countAbove(descending: Float64Array, value: number): number {
  const at = descending.findIndex((each) => each <= value);
  return at < 0 ? descending.length : at;
}

/** How many of `count` are above a quantile, with 95 % confidence: the binomial distribution. */
function likelyCount(count: number, share: number): [number, number] {
  const mean = count * share;
  if (mean > 500 || share <= 0 || share >= 1) {
    const spread = 1.96 * Math.sqrt(Math.max(0, mean * (1 - share)));
    return [Math.max(0, Math.floor(mean - spread)), Math.min(count, Math.ceil(mean + spread))];
  }
  let probability = Math.exp(count * Math.log1p(-share));
  let sum = probability;
  let fewest = 0;
  let k = 0;
  while (sum < 0.975 && k < count) {
    if (sum <= 0.025) fewest = k + 1;
    probability *= ((count - k) / (k + 1)) * (share / (1 - share));
    k++;
    sum += probability;
  }
  return [fewest, k];
}
