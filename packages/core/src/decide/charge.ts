import type { Cells, Charge } from "../algorithms/algorithm.js";
import type { Decision } from "./decision.js";
import type { Limit } from "./limit.js";

/**
 * For stores: whether a decision that was just committed began a new state, because the old one had ended or a clock's step had made
 * it void. Then the new state needs another number.
 */
export function beganState(limit: Limit, cells: Cells, at: number, nowMs: number, made: Decision): boolean {
  const { algorithm, policy } = limit;
  // Fast path: more than this charge is missing, so the state is older.
  if (made.remaining !== Math.max(made.limit - made.cost, 0)) return false;
  if (!made.allowed && algorithm.countsRejected?.(policy) !== true) return false;
  const size = algorithm.size(policy, noCells, 0);
  const begun = size <= scratch.length ? scratch : new Float64Array(size);
  algorithm.decide(limit, begun, 0, nowMs, made.cost, true);
  let began = true;
  for (let i = 0; i < size; i++) {
    if (cells[at + i] !== begun[i]) began = false;
    begun[i] = 0;
  }
  return began;
}

/** Zeros to begin a state on; enough for most algorithms. */
const scratch: Cells = new Float64Array(16);

/** Zeros, which read as no state. */
const noCells: Cells = new Float64Array(3);

/**
 * For stores: implements `Store.settle` on cells. A charge to an earlier state refunds nothing; only a bucket still charges a higher
 * cost.
 * @param state the number of the state in the cells; undefined if the key has no state.
 */
export function settleIn(
  { algorithm, policy }: Limit,
  cells: Cells,
  at: number,
  nowMs: number,
  charge: Charge,
  cost: number,
  state: number | undefined,
): number {
  const { receipt } = charge;
  if (receipt !== undefined && nowMs >= receipt.untilMs) return 0;
  const counts = state !== undefined && charge.state === state;
  if (!counts && cost <= charge.cost) return 0;
  return algorithm.settle(policy, cells, at, nowMs, counts ? charge.atMs : Number.NEGATIVE_INFINITY, charge.cost, cost);
}
