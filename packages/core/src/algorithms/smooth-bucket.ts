import { type Algorithm, type Cells, decision, type PolicyBase } from "./algorithm.js";
import { type Rate, rescale } from "./rate.js";

/** The whole numbers that a smooth bucket computes with. */
export type SmoothBucketParts = Rate;

type SmoothPolicy = PolicyBase & SmoothBucketParts;

/** The level after the last charge and that charge's time, in units of `UNIT` parts (0: no state); full at `FULL_AT`. */
const LEVEL = 0;
const TIME = 1;
const UNIT = 2;
const FULL_AT = 3;

/** The level at `atMs` in the policy's own parts; a full bucket is no state. */
function levelAt(policy: SmoothPolicy, cells: Cells, at: number, nowMs: number): number {
  const { unit, flow, full, spanMs } = policy;
  const stateUnit = cells[at + UNIT] as number;
  if (stateUnit === 0) return full;
  const time = cells[at + TIME] as number;
  if (time - nowMs > spanMs || nowMs >= (cells[at + FULL_AT] as number)) return full;
  const level = rescale(cells[at + LEVEL] as number, stateUnit, unit);
  if (level >= full) return full;
  const gained = nowMs > time ? Math.min(nowMs - time, spanMs) * flow : 0;
  return gained >= full - level ? full : level + gained;
}

/** Token bucket, smooth, and GCRA: one algorithm in two notations. */
export const smoothBucketAlgorithm: Algorithm<SmoothPolicy> = {
  size: () => 4,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { quota, unit, flow, full } = limit.policy;
    let level = levelAt(limit.policy, cells, at, nowMs);
    const time = cells[at + TIME] as number;
    const atMs = level < full && time > nowMs ? time : nowMs;
    const allowed = cost <= quota && cost * unit <= level;
    let fullAt = atMs;
    if (allowed && commit) {
      level -= cost * unit;
      fullAt = atMs + Math.ceil((full - level) / flow);
      cells[at + LEVEL] = level;
      cells[at + TIME] = atMs;
      cells[at + UNIT] = unit;
      cells[at + FULL_AT] = fullAt;
    } else if (level < full) {
      // A state written under another policy is as good as none when that policy said so, or earlier.
      fullAt = Math.min(atMs + Math.ceil((full - level) / flow), cells[at + FULL_AT] as number);
    }
    const remaining = Math.floor(level / unit);
    let retryAfterMs = 0;
    if (cost > quota) retryAfterMs = Number.POSITIVE_INFINITY;
    else if (cost > remaining) retryAfterMs = Math.min(atMs + Math.ceil((cost * unit - level) / flow), fullAt) - nowMs;
    return decision(limit, quota, allowed, remaining, retryAfterMs, level < full ? fullAt - nowMs : 0, 0, cost, atMs);
  },

  refund(policy, cells, at, nowMs, chargedAtMs, cost) {
    const { unit, flow, full, spanMs } = policy;
    const level = levelAt(policy, cells, at, nowMs);
    if (level === full) return 0;
    const time = cells[at + TIME] as number;
    // A charge after the last one is of a state that a clock's jump made void.
    if (chargedAtMs > time) return 0;
    const sinceMs = Math.max(nowMs, time) - chargedAtMs;
    const back = Math.min(Math.min(cost, policy.quota) * unit - Math.min(sinceMs, spanMs) * flow, full - level);
    if (back <= 0) return 0;
    if (level + back === full) {
      cells.fill(0, at, at + 4);
    } else {
      // The state keeps its own time, so the level is raised as of then.
      const then = rescale(cells[at + LEVEL] as number, cells[at + UNIT] as number, unit) + back;
      cells[at + LEVEL] = then;
      cells[at + UNIT] = unit;
      cells[at + FULL_AT] = Math.min(time + Math.ceil((full - then) / flow), cells[at + FULL_AT] as number);
    }
    return back / unit;
  },
};
