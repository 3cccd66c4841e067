import type { Decision, Policy } from "@floodgate/core";
import { WindowSums } from "../measure/window-sums.js";
import { Peaks, usedOf } from "../suggest/peaks.js";

/** What each client of a rule needs: the least limit under which it would never have been limited by this rule alone. */
export class Needs {
  readonly #peaks: Peaks;
  readonly #sums: WindowSums | undefined;
  /** Whether there were more clients than are measured. */
  isFull = false;
  /** The client that needs most, and when it did. */
  greatest: { readonly key: string; readonly atMs: number; readonly need: number } | undefined;

  constructor(policy: Policy, maxClients: number) {
    this.#peaks = new Peaks(1, maxClients);
    this.#sums = policy.algorithm === "sliding-window-log" ? new WindowSums([{ windowMs: policy.windowMs }]) : undefined;
  }

  get clients(): number {
    return this.#peaks.keys.size;
  }

  /** The number of a client; -1 if too many others came before it. */
  clientOf(key: string): number {
    return this.#peaks.keys.of(key);
  }

  needOf(client: number): number {
    return this.#peaks.of(client, 0);
  }

  see(key: string, decision: Decision, nowMs: number): void {
    const client = this.clientOf(key);
    if (client < 0) {
      this.isFull = true;
      return;
    }
    this.#sums?.add(client, nowMs, decision.cost);
    const need = this.#sums?.sum(client, 0) ?? usedOf(decision);
    this.#peaks.see(client, 0, need);
    if (need > (this.greatest?.need ?? 0)) this.greatest = { key, atMs: nowMs, need };
  }

  /** All needs, the greatest first; and the place of each client in that order. */
  ranked(): { readonly descending: Float64Array; readonly rankOf: Uint32Array } {
    const values = Float64Array.from({ length: this.clients }, (_, i) => this.needOf(i));
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
