import type { Policy, StateView } from "@floodgate/core";
import { type Algorithm, algorithmOf, type Decision } from "@floodgate/core/store";
import { doubled } from "./numbers.js";

/** The state of one key under a policy, decided by the algorithm of core. */
export class KeyState {
  readonly #limit: { readonly name: string; readonly policy: Policy };
  readonly #algorithm: Algorithm<Policy>;
  #cells: Float64Array;

  constructor(policy: Policy, cells: Float64Array = new Float64Array(widthOf(policy))) {
    this.#limit = { name: policy.algorithm, policy };
    this.#algorithm = algorithmOf(policy);
    this.#cells = cells;
  }

  decide(nowMs: number, cost: number, commit = true): Decision {
    // A log grows with each request.
    const size = this.#algorithm.size(this.#limit.policy, this.#cells, 0);
    if (size > this.#cells.length) this.#cells = doubled(this.#cells, size);
    return this.#algorithm.decide(this.#limit, this.#cells, 0, nowMs, cost, commit);
  }

  view(nowMs: number): StateView {
    return this.#algorithm.view(this.#limit.policy, this.#cells, 0, nowMs);
  }

  copy(): KeyState {
    return new KeyState(this.#limit.policy, this.#cells.slice());
  }
}

/** The states of clients with the numbers 0, 1, 2, … under a policy. */
export class ClientStates {
  readonly policy: Policy;
  /** How many clients there are. */
  readonly clients: number;
  readonly #limit: { readonly name: string; readonly policy: Policy };
  readonly #algorithm: Algorithm<Policy>;
  readonly #width: number;
  /** The states of all clients; one by one if they grow. */
  readonly #cells: Float64Array;
  readonly #growing: KeyState[] | undefined;

  constructor(policy: Policy, clients: number) {
    this.policy = policy;
    this.clients = clients;
    this.#limit = { name: policy.algorithm, policy };
    this.#algorithm = algorithmOf(policy);
    this.#width = widthOf(policy);
    this.#growing = grows(policy) ? [] : undefined;
    this.#cells = new Float64Array(grows(policy) ? 0 : clients * this.#width);
  }

  decide(client: number, nowMs: number, cost: number, commit: boolean): Decision {
    if (this.#growing === undefined) return this.#algorithm.decide(this.#limit, this.#cells, client * this.#width, nowMs, cost, commit);
    this.#growing[client] ??= new KeyState(this.policy);
    return this.#growing[client].decide(nowMs, cost, commit);
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
