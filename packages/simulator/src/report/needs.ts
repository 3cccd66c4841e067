import type { Decision, Policy } from "@floodgate/core";
import { KeyIndex } from "../measure/key-index.js";
import { WindowSums } from "../measure/window-sums.js";
import { doubled } from "../support/min-heap.js";

/** What each client of a rule needs: the least limit under which it would never have been limited by this rule alone. */
export class Needs {
  readonly #keys: KeyIndex;
  #values: Float64Array = new Float64Array(64);
  readonly #sums: WindowSums | undefined;
  /** Whether there were more clients than are measured. */
  isFull = false;
  /** The client that needs most, and when it did. */
  greatest: { readonly key: string; readonly atMs: number; readonly need: number } | undefined;

  constructor(policy: Policy, maxClients: number) {
    this.#keys = new KeyIndex(maxClients);
    this.#sums = policy.algorithm === "sliding-window-log" ? new WindowSums([{ windowMs: policy.windowMs }]) : undefined;
  }

  get clients(): number {
    return this.#keys.size;
  }

  /** The number of a client; -1 if too many others came before it. */
  clientOf(key: string): number {
    return this.#keys.of(key);
  }

  needOf(client: number): number {
    return this.#values[client] as number;
  }

  see(key: string, decision: Decision, nowMs: number): void {
    const client = this.#keys.of(key);
    if (client < 0) {
      this.isFull = true;
      return;
    }
    while (client >= this.#values.length) this.#values = doubled(this.#values);
    const used = this.#usedBy(client, decision, nowMs);
    if (used <= (this.#values[client] as number)) return;
    this.#values[client] = used;
    if (used > (this.greatest?.need ?? 0)) this.greatest = { key, atMs: nowMs, need: used };
  }

  #usedBy(client: number, { allowed, limit, remaining, cost }: Decision, nowMs: number): number {
    if (this.#sums === undefined) return allowed ? limit - remaining : limit + 1;
    this.#sums.add(client, nowMs, cost);
    return this.#sums.sum(client, 0);
  }

  /** All needs, the greatest first; and the place of each client in that order. */
  ranked(): { readonly descending: Float64Array; readonly rankOf: Uint32Array } {
    const values = this.#values.subarray(0, this.#keys.size);
    const order = Uint32Array.from(values, (_, i) => i).sort((a, b) => (values[b] as number) - (values[a] as number));
    const rankOf = new Uint32Array(order.length);
    const descending = new Float64Array(order.length);
    order.forEach((client, rank) => {
      rankOf[client] = rank;
      descending[rank] = values[client] as number;
    });
    return { descending, rankOf };
  }
}

/** How many of the needs are above a limit: so many clients would be limited. */
export function countAbove(descending: Float64Array, limit: number): number {
  let low = 0;
  let high = descending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((descending[middle] as number) > limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
