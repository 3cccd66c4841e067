import type { Policy, StateView } from "@floodgate/core";
import { type Algorithm, algorithmOf, type Decision } from "@floodgate/core/store";
import { doubled } from "./per-client.js";

/** The states of keys with the numbers 0, 1, 2, … under a policy, decided by the algorithm of core. */
export class KeyStates {
  readonly policy: Policy;
  /** How many keys there are. */
  readonly keys: number;
  readonly #limit: { readonly name: string; readonly policy: Policy };
  readonly #algorithm: Algorithm<Policy>;
  readonly #width: number;
  /** The states of all keys in one array; of policies whose states grow, an array for each key. */
  readonly #cells: Float64Array[];

  constructor(policy: Policy, keys = 1, cells?: Float64Array[]) {
    this.policy = policy;
    this.keys = keys;
    this.#limit = { name: policy.algorithm, policy };
    this.#algorithm = algorithmOf(policy);
    this.#width = widthOf(policy);
    this.#cells = cells ?? (grows(policy) ? [] : [new Float64Array(keys * this.#width)]);
  }

  decide(key: number, nowMs: number, cost: number, commit = true): Decision {
    return this.#algorithm.decide(this.#limit, this.#cellsOf(key), this.#startOf(key), nowMs, cost, commit);
  }

  view(key: number, nowMs: number): StateView {
    return this.#algorithm.view(this.policy, this.#cellsOf(key), this.#startOf(key), nowMs);
  }

  copy(): KeyStates {
    const cells = this.#cells.map((each) => each.slice());
    return new KeyStates(this.policy, this.keys, cells);
  }

  /** The array with the cells of a key. A log gets room for one more request. */
  #cellsOf(key: number): Float64Array {
    if (this.#algorithm.grows !== true) return this.#cells[0] as Float64Array;
    const cells = this.#cells[key] ?? new Float64Array(this.#width);
    const size = this.#algorithm.size(this.policy, cells, 0);
    this.#cells[key] = size > cells.length ? doubled(cells, size) : cells;
    return this.#cells[key];
  }

  #startOf(key: number): number {
    return this.#algorithm.grows === true ? 0 : key * this.#width;
  }
}

/** Whether the state of a key grows with its requests. */
export function grows(policy: Policy): boolean {
  return algorithmOf(policy).grows === true;
}

/** How many numbers the state of a key takes at first. */
export function widthOf(policy: Policy): number {
  return algorithmOf(policy).size(policy, new Float64Array(64), 0);
}
