import type { Policy } from "@floodgate/core";
import { algorithmOf } from "@floodgate/core/store";
import { KeyState, widthOf } from "../measure/key-state.js";
import { countAbove } from "../suggest/quantile.js";

/** The most cells of state that the lanes of one rule may need: 256 MB. */
const maxCells = 2 ** 25;

/** What one limit of a grid did. */
export interface LaneCounts {
  limited: number;
  clientsLimited: number;
  /** Limited requests by interval of the timeline. */
  readonly limitedAt: Uint32Array;
}

/**
 * One limit of a grid. It decides only the requests of clients that need more than it: the others are never limited, and change nothing for
 * anybody else.
 */
export class Lane implements LaneCounts {
  readonly policy: Policy;
  /** How many clients need more. Clients are numbered by what they need, the greatest first. */
  readonly clients: number;
  limited = 0;
  clientsLimited = 0;
  readonly limitedAt: Uint32Array;
  readonly #limit: { readonly name: string; readonly policy: Policy };
  /** The states of all clients; of a log, whose states differ in size, one by one. */
  readonly #cells: Float64Array;
  readonly #width: number;
  readonly #logs: KeyState[] | undefined;
  readonly #touched: Uint8Array;

  constructor(policy: Policy, clients: number, intervals: number) {
    this.policy = policy;
    this.clients = clients;
    this.limitedAt = new Uint32Array(intervals);
    this.#logs = policy.algorithm === "sliding-window-log" ? [] : undefined;
    this.#limit = { name: "grid", policy };
    this.#width = widthOf(policy);
    this.#cells = new Float64Array(this.#logs !== undefined || policy.quota === 0 ? 0 : clients * this.#width);
    this.#touched = new Uint8Array(clients);
  }

  decide(client: number, nowMs: number, cost: number, interval: number): void {
    if (this.policy.quota > 0 && this.#allows(client, nowMs, cost)) return;
    this.limited++;
    (this.limitedAt[interval] as number)++;
    if (this.#touched[client] === 1) return;
    this.#touched[client] = 1;
    this.clientsLimited++;
  }

  #allows(client: number, nowMs: number, cost: number): boolean {
    if (this.#logs !== undefined) {
      this.#logs[client] ??= new KeyState(this.policy);
      return this.#logs[client].decide(nowMs, cost).allowed;
    }
    return algorithmOf(this.policy).decide(this.#limit, this.#cells, client * this.#width, nowMs, cost, true).allowed;
  }
}

/** The policies of a grid whose states fit into memory together. Until they fit, every second one is dropped, and the rule's own last. */
export function fitting(policies: readonly Policy[], own: Policy, descending: Float64Array): readonly Policy[] {
  let kept = policies;
  while (kept.length > 0 && kept.reduce((sum, policy) => sum + cellsOf(policy, descending), 0) > maxCells) {
    if (kept.length === 1) return [];
    const fewer = kept.filter((policy, i) => i % 2 === 1 || policy === own);
    kept = fewer.length < kept.length ? fewer : kept.filter((policy) => policy === own);
  }
  return kept;
}

function cellsOf(policy: Policy, descending: Float64Array): number {
  const clients = countAbove(descending, policy.quota);
  const width = widthOf(policy);
  if (policy.algorithm !== "sliding-window-log") return clients * width;
  let cells = 0;
  for (let i = 0; i < clients; i++) cells += width + 2 * Math.min(policy.quota, descending[i] as number);
  return cells;
}
