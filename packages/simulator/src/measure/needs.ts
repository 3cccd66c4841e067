import { type Decision, fixedWindow, type Policy } from "@floodgate/core";
import { withLimit } from "../policies/options.js";
import { type KeyIndex, PerClient, WindowSums } from "./per-client.js";

type CountedDecision = Pick<Decision, "allowed" | "cost" | "limit" | "remaining">;

/**
 * What each client of a rule needs: the least limit under which it would never have been limited by this rule alone. The decisions come from
 * `measuringPolicy`.
 */
export class Needs {
  /** The numbers of the clients. May be shared with others that see the same requests. */
  readonly keys: KeyIndex;
  readonly #values = new PerClient();
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

/**
 * A policy that measures what clients need, and limits hardly any of them. Under a limit that nobody reaches, the most that a client has used
 * at once is the least limit that never rejects it. A log that nobody exceeds would hold every request. So `Needs` sums its windows, and a
 * cheap policy only says who the clients are.
 */
export function measuringPolicy(policy: Policy): Policy {
  return policy.algorithm === "sliding-window-log" ? fixedWindow({ limit: 2 ** 20, window: "1s" }) : unlimited(policy);
}

/** The same policy with a limit that hardly any client reaches. */
function unlimited(policy: Policy): Policy {
  for (let limit = 2 ** 30; limit > policy.quota; limit = Math.floor(limit / 2)) {
    const larger = withLimit(policy, limit);
    if (larger !== undefined) return larger;
  }
  return policy;
}
