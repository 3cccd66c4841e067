import { type Algorithm, type Cells, decision, type PolicyBase } from "./algorithm.js";
import { changeOf, deepest, given } from "./debt.js";
import { endOnceCharged, endOnceSettled } from "./end.js";
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

function isState({ spanMs }: SmoothPolicy, cells: Cells, at: number, nowMs: number): boolean {
  return cells[at + UNIT] !== 0 && (cells[at + TIME] as number) - nowMs <= spanMs && nowMs < (cells[at + FULL_AT] as number);
}

/** When a level has risen to the full. */
function endOf({ flow, full }: SmoothPolicy, level: number, time: number): number {
  return time + Math.ceil((full - level) / flow);
}

function isOwn(policy: SmoothPolicy, cells: Cells, at: number): boolean {
  const end = endOf(policy, cells[at + LEVEL] as number, cells[at + TIME] as number);
  return cells[at + UNIT] === policy.unit && cells[at + FULL_AT] === end;
}

/** A state's level at `nowMs` in the policy's own parts. */
function levelAt({ unit, flow, full }: SmoothPolicy, cells: Cells, at: number, nowMs: number): number {
  const time = cells[at + TIME] as number;
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
    const exists = isState(limit.policy, cells, at, nowMs);
    let level = exists ? levelAt(limit.policy, cells, at, nowMs) : full;
    const time = cells[at + TIME] as number;
    const atMs = level < full && time > nowMs ? time : nowMs;
    const allowed = cost <= quota && cost * unit <= level;
    let fullAt = atMs;
    if (allowed && commit) {
      const own = !exists || isOwn(limit.policy, cells, at);
      level -= cost * unit;
      fullAt = endOf(limit.policy, level, atMs);
      keep(cells, at, level, atMs, unit, endOnceCharged(own, fullAt, cells[at + FULL_AT] as number));
    } else if (level < full) {
      // A state that other policies have charged may end before this one's bucket would be full.
      fullAt = Math.min(endOf(limit.policy, level, atMs), cells[at + FULL_AT] as number);
    }
    const remaining = level < 0 ? 0 : Math.floor(level / unit);
    let retryAfterMs = 0;
    if (cost > quota) retryAfterMs = Number.POSITIVE_INFINITY;
    else if (cost > remaining) retryAfterMs = Math.min(atMs + Math.ceil((cost * unit - level) / flow), fullAt) - nowMs;
    return decision(limit, quota, allowed, remaining, retryAfterMs, level < full ? fullAt - nowMs : 0, 0, cost, atMs);
  },

  settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
    const { quota, unit, flow, full } = policy;
    const exists = isState(policy, cells, at, nowMs);
    // The state keeps its own time and parts, so it changes by as much for every policy.
    const stored = exists ? (cells[at + LEVEL] as number) : full;
    const time = exists ? (cells[at + TIME] as number) : nowMs;
    const parts = exists ? (cells[at + UNIT] as number) : unit;
    const storedFullAt = exists ? (cells[at + FULL_AT] as number) : nowMs;
    const own = !exists || isOwn(policy, cells, at);
    if (cost > reserved) {
      const most = Math.max(Math.min(stored - lowest(full), deepest), 0);
      const units = Math.min(changeOf(reserved, cost), Math.floor(most / parts), Math.floor(deepest / unit));
      const level = stored - units * parts;
      const takesMs = Math.ceil((units * unit) / flow);
      if (units > 0) keep(cells, at, level, time, parts, endOnceSettled(own, endOf(policy, level, time), storedFullAt, takesMs, nowMs));
      return units;
    }
    // A charge after the last one is of a state that a clock's jump made void.
    if (!exists || chargedAtMs > time) return 0;
    const missing = full - levelAt(policy, cells, at, nowMs);
    const due = given(reserved, cost, quota, unit, (Math.max(nowMs, time) - chargedAtMs) * flow);
    const back = Math.min(rescale(Math.min(due, missing), unit, parts), deepest, Number.MAX_SAFE_INTEGER - stored);
    if (back === 0) return 0;
    if (own && back === missing) cells.fill(0, at, at + 4);
    else keep(cells, at, stored + back, time, parts, endOnceSettled(own, endOf(policy, stored + back, time), storedFullAt, 0, nowMs));
    return -back / parts;
  },
};

function keep(cells: Cells, at: number, level: number, time: number, unit: number, fullAt: number): void {
  cells[at + LEVEL] = level;
  cells[at + TIME] = time;
  cells[at + UNIT] = unit;
  cells[at + FULL_AT] = fullAt;
}
