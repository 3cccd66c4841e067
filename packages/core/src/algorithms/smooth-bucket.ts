import type { Algorithm, Cells, PolicyBase } from "./algorithm.js";
import { changeOf, given } from "./debt.js";
import { MadeDecision } from "./decision.js";
import { type Rate, recoveryMs, rescale } from "./rate.js";
import {
  AMOUNT,
  bucketCells,
  deepestAt,
  fastestFlow,
  flowed,
  fullAt,
  isCredible,
  LEVEL,
  note,
  QUOTA,
  spanAt,
  TIME,
  takesAt,
  unitAt,
} from "./shared.js";
import { emptyView } from "./state-view.js";

/** The policy of a smooth bucket. In debt, the level of the state is negative. */
type SmoothPolicy = PolicyBase & Rate;

/** When the state's own bucket is full. -Infinity without a state, if no plan can have its numbers, or if it is too far ahead of the clock. */
function endOf(policy: SmoothPolicy, cells: Cells, at: number, nowMs: number): number {
  if (cells[at + QUOTA] === 0 || !isCredible(policy, cells, at)) return Number.NEGATIVE_INFINITY;
  const time = cells[at + TIME] as number;
  if (time > nowMs && time - nowMs > spanAt(policy, cells, at)) return Number.NEGATIVE_INFINITY;
  return time + takesAt(policy, cells, at, fullAt(policy, cells, at) - (cells[at + LEVEL] as number));
}

/** A state's level at `nowMs` in the policy's own parts. */
function levelAt(policy: SmoothPolicy, cells: Cells, at: number, nowMs: number): number {
  const level = rescale(cells[at + LEVEL] as number, unitAt(policy, cells, at), policy.unit);
  return risen(level, cells[at + TIME] as number, nowMs, policy.flow, policy.full);
}

/** A level of `time` at `nowMs`. */
function risen(level: number, time: number, nowMs: number, flow: number, full: number): number {
  if (level >= full) return full;
  // A product above 2^53 is rounded, but it fills the bucket in any case.
  const gained = nowMs > time ? (nowMs - time) * flow : 0;
  return gained >= full - level ? full : level + gained;
}

/** The smooth token bucket and GCRA are one algorithm in two notations. */
export const smoothBucket: Algorithm<SmoothPolicy> = {
  name: "smooth-bucket",
  parameters: ["quota", "unit", "flow", "divisor"],
  cells: bucketCells,
  recoveryMs,

  size: () => bucketCells.length,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { quota, unit, flow, divisor, full, spanMs } = limit.policy;
    const time = cells[at + TIME] as number;
    // If no other plan charges the key, the state ends when this plan's bucket is full.
    const own = cells[at + QUOTA] === quota && cells[at + AMOUNT] === flow * divisor;
    const shared = !own && nowMs < endOf(limit.policy, cells, at, nowMs);
    let level = full;
    if (shared) level = levelAt(limit.policy, cells, at, nowMs);
    else if (own && time - nowMs <= spanMs) level = risen(cells[at + LEVEL] as number, time, nowMs, flow, full);
    const atMs = time > nowMs && (shared || level < full) ? time : nowMs;
    const allowed = cost <= quota && cost * unit <= level;
    if (allowed && commit) {
      level -= cost * unit;
      if (shared) {
        keep(limit.policy, cells, at, level, atMs, false);
      } else {
        cells[at + LEVEL] = level;
        cells[at + TIME] = atMs;
        cells[at + QUOTA] = quota;
        cells[at + AMOUNT] = flow * divisor;
      }
    }
    let fullAtMs = nowMs;
    if (level < full) {
      fullAtMs = atMs + Math.ceil((full - level) / flow);
      // The state may end before this plan's bucket would be full.
      if (shared) fullAtMs = Math.min(fullAtMs, endOf(limit.policy, cells, at, nowMs));
    }
    const remaining = level < 0 ? 0 : Math.floor(level / unit);
    let retryAfterMs = 0;
    if (cost > quota) retryAfterMs = Number.POSITIVE_INFINITY;
    else if (cost > remaining) retryAfterMs = Math.min(atMs + Math.ceil((cost * unit - level) / flow), fullAtMs) - nowMs;
    return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs: fullAtMs - nowMs, delayMs: 0, atMs });
  },

  settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
    const exists = nowMs < endOf(policy, cells, at, nowMs);
    const time = cells[at + TIME] as number;
    if (cost <= reserved) {
      // A charge later than the last one belongs to a state that a clock jump has ended.
      if (!exists || chargedAtMs > time) return 0;
      return refund(policy, cells, at, Math.max(nowMs, time), chargedAtMs, reserved, cost);
    }
    // The state has its own parts, so the change is the same for every plan.
    if (!exists) keep(policy, cells, at, policy.full, nowMs, true);
    const parts = unitAt(policy, cells, at);
    const full = fullAt(policy, cells, at);
    // The bucket fills until now before the debt is added. Otherwise a faster plan could pay the debt with what a full bucket lost.
    const level = Math.min((cells[at + LEVEL] as number) + flowed(policy, parts, cells[at + TIME] as number, nowMs), full);
    const missing = full - level;
    const room = Math.floor((deepestAt(policy, cells, at) - missing) / parts);
    const units = Math.max(Math.min(changeOf(reserved, cost), room), 0);
    if (units === 0) return 0;
    cells[at + LEVEL] = level - units * parts;
    cells[at + TIME] = Math.max(nowMs, cells[at + TIME] as number);
    return units;
  },

  view(policy, cells, at, nowMs) {
    if (nowMs >= endOf(policy, cells, at, nowMs)) return emptyView;
    const level = levelAt(policy, cells, at, nowMs);
    return level < policy.full ? { kind: "bucket", level: level / policy.unit, capacity: policy.quota } : emptyView;
  },
};

function refund(policy: SmoothPolicy, cells: Cells, at: number, atMs: number, chargedAtMs: number, reserved: number, cost: number): number {
  const { quota, unit, full } = policy;
  const parts = unitAt(policy, cells, at);
  const missing = full - levelAt(policy, cells, at, atMs);
  const due = given(reserved, cost, quota, unit, (atMs - chargedAtMs) * fastestFlow(policy, cells, at));
  const room = fullAt(policy, cells, at) - (cells[at + LEVEL] as number);
  const back = Math.min(rescale(Math.min(due, missing), unit, parts), room);
  if (back === 0) return 0;
  (cells[at + LEVEL] as number) += back;
  // A full bucket has no state.
  if (endOf(policy, cells, at, atMs) <= atMs) cells.fill(0, at, at + bucketCells.length);
  return -back / parts;
}

/** Writes a level in the policy's own parts. */
function keep(policy: SmoothPolicy, cells: Cells, at: number, level: number, time: number, begins: boolean): void {
  note(policy, cells, at, begins);
  cells[at + LEVEL] = rescale(level, policy.unit, unitAt(policy, cells, at));
  cells[at + TIME] = time;
}
