import { type Algorithm, type Cells, decision, type PolicyBase } from "./algorithm.js";
import { deepest, given } from "./debt.js";
import { type Rate, rescale } from "./rate.js";

/** The whole numbers that a smooth bucket computes with. */
export type SmoothBucketParts = Rate;

type SmoothPolicy = PolicyBase & SmoothBucketParts;

/** The level after the last charge, below 0 in debt, and that charge's time, in units of `UNIT` parts (0: no state); full at `FULL_AT`. */
const LEVEL = 0;
const TIME = 1;
const UNIT = 2;
const FULL_AT = 3;

/** The state's level in the policy's own parts. */
function levelThen(unit: number, full: number, cells: Cells, at: number): number {
  const level = rescale(cells[at + LEVEL] as number, cells[at + UNIT] as number, unit);
  return level < 0 ? Math.max(level, lowest(full)) : level;
}

/** As low as a debt takes the level. */
function lowest(full: number): number {
  return Math.min(full - deepest, 0);
}

/** The level at `nowMs` in the policy's own parts; a full bucket is no state. */
function levelAt(policy: SmoothPolicy, cells: Cells, at: number, nowMs: number): number {
  const { unit, flow, full, spanMs } = policy;
  if (cells[at + UNIT] === 0) return full;
  const time = cells[at + TIME] as number;
  if (time - nowMs > spanMs || nowMs >= (cells[at + FULL_AT] as number)) return full;
  const level = levelThen(unit, full, cells, at);
  if (level >= full) return full;
  // A product above 2^53 is rounded, and more than there is room for all the same.
  const gained = nowMs > time ? (nowMs - time) * flow : 0;
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
      keep(cells, at, level, atMs, unit, fullAt);
    } else if (level < full) {
      // A state written under another policy is as good as none when that policy said so, or earlier.
      fullAt = Math.min(atMs + Math.ceil((full - level) / flow), cells[at + FULL_AT] as number);
    }
    const remaining = level < 0 ? 0 : Math.floor(level / unit);
    let retryAfterMs = 0;
    if (cost > quota) retryAfterMs = Number.POSITIVE_INFINITY;
    else if (cost > remaining) retryAfterMs = Math.min(atMs + Math.ceil((cost * unit - level) / flow), fullAt) - nowMs;
    return decision(limit, quota, allowed, remaining, retryAfterMs, level < full ? fullAt - nowMs : 0, 0, cost, atMs);
  },

  settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
    const { quota, unit, flow, full } = policy;
    let level = levelAt(policy, cells, at, nowMs);
    const time = cells[at + TIME] as number;
    const atMs = level < full ? Math.max(nowMs, time) : nowMs;
    if (cost > reserved) {
      const units = Math.min(cost - reserved, Math.floor((level - lowest(full)) / unit));
      if (units === 0) return 0;
      level -= units * unit;
      keep(cells, at, level, atMs, unit, atMs + Math.ceil((full - level) / flow));
      return units;
    }
    // A charge after the last one is of a state that a clock's jump made void.
    if (level === full || chargedAtMs > time) return 0;
    const back = Math.min(given(reserved, cost, quota, unit, (atMs - chargedAtMs) * flow), full - level);
    if (back === 0) return 0;
    if (level + back === full) {
      cells.fill(0, at, at + 4);
    } else {
      // The state keeps its own time, so the level is raised as of then.
      level = levelThen(unit, full, cells, at) + back;
      keep(cells, at, level, time, unit, Math.min(time + Math.ceil((full - level) / flow), cells[at + FULL_AT] as number));
    }
    return -back / unit;
  },
};

function keep(cells: Cells, at: number, level: number, time: number, unit: number, fullAt: number): void {
  cells[at + LEVEL] = level;
  cells[at + TIME] = time;
  cells[at + UNIT] = unit;
  cells[at + FULL_AT] = fullAt;
}
