import { type Algorithm, type Cells, checkExact, emptyView, type PolicyBase } from "./algorithm.js";
import { changeOf, maxDebtMs, maxMissing, refundedParts } from "./debt.js";
import { MadeDecision } from "./decision.js";

/*
 * The smooth token bucket, GCRA and the leaky bucket are one algorithm. A bucket fills at a constant rate, and a request takes units out. A
 * queue drains at a constant rate, and a request adds units. A bucket that lacks some units decides as a queue with that backlog does. So for
 * both of them these units are called "missing" here: a request adds its cost to them, and time takes them away.
 *
 * All numbers are whole. If 10 units arrive every second, a unit has 1000 parts, and 10 parts arrive each millisecond.
 *
 * Plans that share a key have the same `everyMs`, but may have different quotas and amounts. The state keeps the largest of each, as if one plan
 * had charged it that has both: the state's own plan. The level is in the parts of that plan. The state ends when the bucket of that plan is
 * full (or its queue empty). Then it ends for all plans, and a store may delete it. So together the plans never admit more than that one alone.
 *
 * A state that only one plan has charged has the numbers of that plan. Most states are such, and `decide` needs no conversions for them.
 */

/**
 * A rate of `amount` units every `everyMs`, in whole numbers: a unit has `unit` parts, and `flow` parts pass each millisecond. Both are
 * divided by `divisor`, to keep products small: `unit * divisor` is `everyMs`, and `flow * divisor` is the amount.
 */
export interface Rate {
  readonly unit: number;
  readonly flow: number;
  readonly divisor: number;
  /** The parts of `quota` units. */
  readonly full: number;
  /** The time that `quota` units take, rounded up. */
  readonly spanMs: number;
}

/** Numbers up to this many parts are not divided: then plans with the same `every` have the same parts, and no fraction is lost. */
const undivided = 2 ** 46;

export function rateOf(where: string, quota: number, amount: number, everyMs: number): Rate {
  // A limit of 0 is decided before the arithmetic, so its rate may be 0.
  if (quota === 0) return { unit: 1, flow: 1, divisor: 1, full: 0, spanMs: 0 };
  const divisor = quota * everyMs <= undivided ? 1 : greatestCommonDivisor(amount, everyMs);
  const unit = everyMs / divisor;
  const flow = amount / divisor;
  const full = quota * unit;
  checkExact(where, full + flow, "Lower the capacity, or use numbers with a larger common divisor (60 every minute rather than 59).");
  return { unit, flow, divisor, full, spanMs: Math.ceil(full / flow) };
}

/** The divisor of `amount` and `everyMs`. If no divisor keeps a shared state exact, its parts are whole units. */
function divisorOf(quota: number, amount: number, everyMs: number): number {
  if (quota * everyMs <= undivided) return 1;
  const divisor = greatestCommonDivisor(amount, everyMs);
  return quota * (everyMs / divisor) <= 2 ** 52 ? divisor : everyMs;
}

/** The time that parts with a large divisor take, rounded up to whole `everyMs` if a millisecond is not a whole number of parts. */
function takesMs(parts: number, amount: number, everyMs: number, divisor: number): number {
  return amount % divisor === 0 ? Math.ceil(parts / (amount / divisor)) : Math.ceil(parts / amount) * everyMs;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/**
 * Converts parts from `from` parts per unit to `to` parts per unit, rounded down. If the exact product would exceed 2^53, the fraction of a
 * unit is dropped.
 */
function rescale(parts: number, from: number, to: number): number {
  if (from === to) return parts;
  const whole = Math.floor(parts / from);
  const product = (parts - whole * from) * to;
  return whole * to + (product <= Number.MAX_SAFE_INTEGER ? Math.floor(product / from) : 0);
}

/**
 * The state of a smooth bucket or a queue: the level (for a queue, the backlog) after the last charge, in the state's parts; the time of
 * that charge; the largest quota and amount. A quota of 0 means that the key was not used.
 */
const layout = ["level", "time", "quota", "amount"] as const;
const LEVEL = 0;
export const TIME = 1;
const QUOTA = 2;
const AMOUNT = 3;

/** Only a queue has `maxDelayMs`. */
type Plan = Rate & { readonly quota: number; readonly maxDelayMs?: number };

/** A bucket stores its level, and a queue what is missing. Converts either to the other: a level to what is missing, and back. */
function missingOrLevel({ maxDelayMs }: Plan, full: number, parts: number): number {
  return maxDelayMs === undefined ? full - parts : parts;
}

/** Converts a stored level or backlog to other parts. Levels are rounded down, and backlogs up. */
function converted({ maxDelayMs }: Plan, parts: number, from: number, to: number): number {
  return maxDelayMs === undefined || from === to ? rescale(parts, from, to) : -rescale(-parts, from, to);
}

// The state's own plan, in its own parts. Its `everyMs` is that of any plan that charges the key.

function stateDivisor({ unit, divisor }: Plan, cells: Cells, at: number): number {
  return divisorOf(cells[at + QUOTA] as number, cells[at + AMOUNT] as number, unit * divisor);
}

function stateUnit(plan: Plan, cells: Cells, at: number): number {
  return (plan.unit * plan.divisor) / stateDivisor(plan, cells, at);
}

function stateFull(plan: Plan, cells: Cells, at: number): number {
  return (cells[at + QUOTA] as number) * stateUnit(plan, cells, at);
}

/** What was missing after the last charge. */
function stateMissing(plan: Plan, cells: Cells, at: number): number {
  return missingOrLevel(plan, stateFull(plan, cells, at), cells[at + LEVEL] as number);
}

function stateTakesMs(plan: Plan, cells: Cells, at: number, parts: number): number {
  return takesMs(parts, cells[at + AMOUNT] as number, plan.unit * plan.divisor, stateDivisor(plan, cells, at));
}

/** How far ahead of the clock a state may be when this plan charges it: the span of the state's own plan after the charge. */
function maxAheadMs(plan: Plan, cells: Cells, at: number): number {
  const quota = Math.max(cells[at + QUOTA] as number, plan.quota);
  const amount = Math.max(cells[at + AMOUNT] as number, plan.flow * plan.divisor);
  const everyMs = plan.unit * plan.divisor;
  const divisor = divisorOf(quota, amount, everyMs);
  return takesMs(quota * (everyMs / divisor), amount, everyMs, divisor);
}

/**
 * When the state ends: its bucket is full, or its queue empty. -Infinity without a state, if no plan can have its numbers, or if it is too far
 * ahead of the clock.
 */
export function endOf(plan: Plan, cells: Cells, at: number, nowMs: number): number {
  // No plan takes longer than ten years, or than this plan, to fill. So no stored number makes a key wait for longer.
  const longestMs = Math.max(plan.spanMs, maxDebtMs);
  if (cells[at + QUOTA] === 0 || stateTakesMs(plan, cells, at, stateFull(plan, cells, at)) > longestMs) return Number.NEGATIVE_INFINITY;
  const time = cells[at + TIME] as number;
  if (time > nowMs && time - nowMs > maxAheadMs(plan, cells, at)) return Number.NEGATIVE_INFINITY;
  return time + stateTakesMs(plan, cells, at, stateMissing(plan, cells, at));
}

// What a plan reads from a state, and writes to it, in its own parts and at its own rate.

/** What is missing at `nowMs` in a state that has not ended, rounded up. */
export function missingAt(plan: Plan, cells: Cells, at: number, nowMs: number): number {
  const level = converted(plan, cells[at + LEVEL] as number, stateUnit(plan, cells, at), plan.unit);
  const gained = Math.max(nowMs - (cells[at + TIME] as number), 0) * plan.flow;
  // A product above 2^53 is rounded, but then nothing is missing in any case.
  return Math.max(missingOrLevel(plan, plan.full, level) - gained, 0);
}

/** Writes what is missing, and the numbers of the plan: the largest of each, or this plan's if it begins the state. */
function keep(plan: Plan, cells: Cells, at: number, missing: number, time: number, begins: boolean): void {
  const amount = plan.flow * plan.divisor;
  if (begins || (cells[at + QUOTA] as number) < plan.quota) cells[at + QUOTA] = plan.quota;
  if (begins || (cells[at + AMOUNT] as number) < amount) cells[at + AMOUNT] = amount;
  const level = missingOrLevel(plan, plan.full, missing);
  cells[at + LEVEL] = converted(plan, level, plan.unit, stateUnit(plan, cells, at));
  cells[at + TIME] = time;
}

/** Charges up to `change` units now, even into debt. Returns how many. The state has its own parts, so the change is the same for every plan. */
export function chargeIn(plan: Plan, cells: Cells, at: number, nowMs: number, change: number): number {
  if (nowMs >= endOf(plan, cells, at, nowMs)) keep(plan, cells, at, 0, nowMs, true);
  const unit = stateUnit(plan, cells, at);
  const time = cells[at + TIME] as number;
  // What flows until now comes before the debt. Otherwise a faster plan could pay the debt with what a full bucket lost.
  const gained = nowMs > time ? rescale((nowMs - time) * plan.flow, plan.unit, unit) : 0;
  const missing = Math.max(stateMissing(plan, cells, at) - gained, 0);
  const most = maxMissing(cells[at + QUOTA] as number, cells[at + AMOUNT] as number, plan.unit * plan.divisor, unit);
  const units = Math.max(Math.min(change, Math.floor((most - missing) / unit)), 0);
  if (units === 0) return 0;
  cells[at + LEVEL] = missingOrLevel(plan, stateFull(plan, cells, at), missing + units * unit);
  cells[at + TIME] = Math.max(nowMs, time);
  return units;
}

/** In debt, the level of a bucket is negative. */
type SmoothPolicy = PolicyBase & Plan;

export const smoothBucket: Algorithm<SmoothPolicy> = {
  name: "smooth-bucket",
  parameters: ["quota", "unit", "flow", "divisor"],
  cells: layout,
  recoveryMs: ({ full, unit, flow }, units) => Math.ceil((full + units * unit) / flow),
  endOf,

  size: () => layout.length,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { policy } = limit;
    const { quota, unit, flow, divisor, full, spanMs, maxDelayMs = Number.POSITIVE_INFINITY } = policy;
    const time = cells[at + TIME] as number;
    // Only this plan has charged an own state. Else the state is shared with others, or it has ended or was never begun.
    const isOwn = cells[at + QUOTA] === quota && cells[at + AMOUNT] === flow * divisor;
    const isShared = !isOwn && nowMs < endOf(policy, cells, at, nowMs);

    // It can exceed the quota of a plan: a larger plan has admitted more, or there is a debt.
    let missing = 0;
    if (isShared) missing = missingAt(policy, cells, at, nowMs);
    else if (isOwn && time - nowMs <= spanMs) {
      missing = missingOrLevel(policy, full, cells[at + LEVEL] as number);
      // A product above 2^53 is rounded, but then nothing is missing in any case.
      if (nowMs > time) missing = Math.max(missing - (nowMs - time) * flow, 0);
    }
    // A time before the state's own counts as the state's own.
    const atMs = time > nowMs && (isShared || missing > 0) ? time : nowMs;

    // The time until nothing is missing. A shared state may end before: others of its plans may be faster.
    let leftMs = Math.ceil(missing / flow);
    if (isShared) leftMs = Math.min(leftMs, endOf(policy, cells, at, nowMs) - atMs);
    const allowed = cost * unit <= full - missing && leftMs <= maxDelayMs;
    // The delay comes from the queue alone. A clock that stepped back adds to the retry and the reset instead.
    const delayMs = allowed && policy.maxDelayMs !== undefined ? leftMs : 0;
    if (allowed && commit) {
      missing += cost * unit;
      leftMs = Math.ceil(missing / flow);
      if (isShared) {
        keep(policy, cells, at, missing, atMs, false);
        leftMs = Math.min(leftMs, endOf(policy, cells, at, nowMs) - atMs);
      } else {
        // As `keep` does, without its conversions.
        cells[at + LEVEL] = missingOrLevel(policy, full, missing);
        cells[at + TIME] = atMs;
        cells[at + QUOTA] = quota;
        cells[at + AMOUNT] = flow * divisor;
      }
    }

    const remaining = leftMs > maxDelayMs || missing > full ? 0 : Math.floor((full - missing) / unit);
    const aheadMs = atMs - nowMs;
    let retryAfterMs = 0;
    if (cost > quota) retryAfterMs = Number.POSITIVE_INFINITY;
    else if (cost > remaining) {
      const roomMs = Math.min(Math.ceil((missing - (full - cost * unit)) / flow), leftMs);
      retryAfterMs = aheadMs + Math.max(roomMs, leftMs - maxDelayMs, 0);
    }
    const resetAfterMs = missing === 0 ? 0 : aheadMs + leftMs;
    return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs, atMs });
  },

  settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
    if (cost > reserved) return chargeIn(policy, cells, at, nowMs, changeOf(reserved, cost));
    const time = cells[at + TIME] as number;
    // A charge later than the last one belongs to a state that a clock jump has ended.
    if (chargedAtMs > time || nowMs >= endOf(policy, cells, at, nowMs)) return 0;
    const { quota, unit, flow, divisor } = policy;
    const atMs = Math.max(nowMs, time);
    const parts = stateUnit(policy, cells, at);
    // The fastest of the plans that charged the state may have refilled it.
    const fastest = Math.max(flow, Math.ceil((cells[at + AMOUNT] as number) / divisor));
    const due = refundedParts(reserved, cost, quota, unit, (atMs - chargedAtMs) * fastest);
    const room = stateFull(policy, cells, at) - (cells[at + LEVEL] as number);
    const back = Math.min(rescale(Math.min(due, missingAt(policy, cells, at, atMs)), unit, parts), room);
    if (back === 0) return 0;
    (cells[at + LEVEL] as number) += back;
    // A full bucket has no state.
    if (endOf(policy, cells, at, atMs) <= atMs) cells.fill(0, at, at + layout.length);
    return -back / parts;
  },

  view(policy, cells, at, nowMs) {
    const { full, unit, quota } = policy;
    const missing = nowMs < endOf(policy, cells, at, nowMs) ? missingAt(policy, cells, at, nowMs) : 0;
    return missing === 0 ? emptyView : { kind: "bucket", level: (full - missing) / unit, capacity: quota };
  },
};
