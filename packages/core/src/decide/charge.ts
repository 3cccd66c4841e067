import type { Cells, Charge } from "../algorithms/algorithm.js";
import type { Decision, Limit } from "./decision.js";

/**
 * For stores: whether a decision that was just committed began a new state, because the old one had ended or a clock's step had made
 * it void. Then the new state needs another number.
 */
export function beganState(limit: Limit, cells: Cells, at: number, nowMs: number, made: Decision): boolean {
  const { algorithm, policy } = limit;
  // Fast path: more than this charge is missing, so the state is older.
  if (made.remaining !== Math.max(made.limit - made.cost, 0)) return false;
  if (!made.allowed && algorithm.countsRejected?.(policy) !== true) return false;
  return isSame(limit, cells, at, (begun) => algorithm.decide(limit, begun, 0, nowMs, made.cost, true));
}

/**
 * For stores: the same for a charge that was just settled. One that costs more, or of held units, may begin a state.
 * @param units what `settleIn` has returned.
 */
export function beganByCharge(limit: Limit, cells: Cells, at: number, nowMs: number, charge: Charge, cost: number, units: number): boolean {
  const isHeld = charge.heldUntilMs !== undefined;
  if (cost <= charge.cost && !isHeld) return false;
  let unitsOfNew = 0;
  const begin = (begun: Cells): void => {
    unitsOfNew = settleIn(limit, begun, 0, nowMs, isHeld ? nothingReserved : charge, cost, undefined);
  };
  // At the largest debt an older state has the same numbers, but had room for fewer units.
  return isSame(limit, cells, at, begin) && (isHeld || unitsOfNew === units);
}

/** Whether a state is the same as one that begins on zeros. */
function isSame({ algorithm, policy }: Limit, cells: Cells, at: number, begin: (begun: Cells) => void): boolean {
  const size = algorithm.size(policy, noCells, 0);
  const begun = size <= scratch.length ? scratch : new Float64Array(size);
  begin(begun);
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
export const noCells: Cells = new Float64Array(3);

/** What `Store.settle` takes for usage that nothing was reserved for: see `Limiter.charge`. */
export const nothingReserved: Charge = Object.freeze({ cost: 0, atMs: 0, state: undefined });

/**
 * For stores: implements `Store.settle` on cells. A charge to an earlier state refunds nothing; only a bucket still charges a higher
 * cost. With `nothingReserved`, every algorithm charges the cost now, and may begin a state.
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
  // Slots that are renewed last longer than the receipt would, and end by themselves.
  if (receipt !== undefined && nowMs >= receipt.untilMs && !algorithm.renew) return 0;
  const counts = state !== undefined && charge.state === state;
  const { heldUntilMs } = charge;
  if (heldUntilMs !== undefined && algorithm.settleHeld !== undefined) {
    return algorithm.settleHeld(policy, cells, at, nowMs, counts ? heldUntilMs : Number.NEGATIVE_INFINITY, charge.cost, cost);
  }
  if (!counts && cost <= charge.cost) return 0;
  return algorithm.settle(policy, cells, at, nowMs, counts ? charge.atMs : Number.NEGATIVE_INFINITY, charge.cost, cost);
}

/**
 * For stores: implements `Store.renew` on cells, as a decision that was just committed.
 * @param state the number of the state in the cells; undefined if the key has no state.
 */
export function renewIn(limit: Limit, cells: Cells, at: number, nowMs: number, charge: Charge, state: number | undefined): Decision {
  const counts = state !== undefined && charge.state === state;
  const chargedAtMs = counts ? charge.atMs : Number.NEGATIVE_INFINITY;
  const renew = limit.algorithm.renew as NonNullable<typeof limit.algorithm.renew>;
  return renew(limit, cells, at, nowMs, chargedAtMs, charge.cost, charge.receipt?.untilMs);
}
