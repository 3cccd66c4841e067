import type { Cells } from "./algorithm.js";
import { deepest, mostMissing } from "./debt.js";
import { divisorOf, type Rate, rescale, takesMs } from "./rate.js";

/*
 * Several plans may charge one bucket. Its state keeps the largest of each of their numbers, and belongs to the plan that has those:
 * its parts are that plan's, and it ends when that plan's bucket is full again (a queue empty). From then on there is no state for any
 * plan, and a store may forget it. So they are never let in more than that plan would be alone: by then, it would have forgotten as well.
 */

/**
 * The state of a smooth bucket or a queue: its level (a queue's backlog) after the last charge, in the state's own parts; the time of
 * that charge; and the largest quota and amount. A quota of 0 is no state.
 */
export const bucketCells: readonly ["level", "time", "quota", "amount"] = ["level", "time", "quota", "amount"];
export const LEVEL: number = bucketCells.indexOf("level");
export const TIME: number = bucketCells.indexOf("time");
export const QUOTA: number = bucketCells.indexOf("quota");
export const AMOUNT: number = bucketCells.indexOf("amount");

type Plan = Rate & { readonly quota: number };

/** What comes in, or drains, in `everyMs` under a plan. */
export function amountOf({ flow, divisor }: Plan): number {
  return flow * divisor;
}

/** Whether a state has just this plan's numbers, as all have where only one charges. */
function isOwn(plan: Plan, cells: Cells, at: number): boolean {
  return cells[at + QUOTA] === plan.quota && cells[at + AMOUNT] === amountOf(plan);
}

function divisorAt({ unit, divisor }: Plan, cells: Cells, at: number): number {
  return divisorOf(cells[at + QUOTA] as number, cells[at + AMOUNT] as number, unit * divisor);
}

/** The parts of a unit of a state. */
export function unitAt(plan: Plan, cells: Cells, at: number): number {
  return isOwn(plan, cells, at) ? plan.unit : (plan.unit * plan.divisor) / divisorAt(plan, cells, at);
}

/** A state's quota, in its parts. */
export function fullAt(plan: Plan, cells: Cells, at: number): number {
  return isOwn(plan, cells, at) ? plan.full : (cells[at + QUOTA] as number) * unitAt(plan, cells, at);
}

/** The time that so many parts of a state take. */
export function takesAt(plan: Plan, cells: Cells, at: number, parts: number): number {
  if (isOwn(plan, cells, at)) return Math.ceil(parts / plan.flow);
  return takesMs(parts, cells[at + AMOUNT] as number, plan.unit * plan.divisor, divisorAt(plan, cells, at));
}

/** What flows under this plan from `time` on until now, in such parts; rounded down. */
export function flowed({ unit, flow }: Plan, parts: number, time: number, nowMs: number): number {
  return nowMs > time ? rescale((nowMs - time) * flow, unit, parts) : 0;
}

/** How far ahead of the clock a state may be that this plan is to charge: the whole span of the plan that has the largest numbers then. */
export function spanAt(plan: Plan, cells: Cells, at: number): number {
  const quota = Math.max(cells[at + QUOTA] as number, plan.quota);
  const amount = Math.max(cells[at + AMOUNT] as number, amountOf(plan));
  const everyMs = plan.unit * plan.divisor;
  const divisor = divisorOf(quota, amount, everyMs);
  return takesMs(quota * (everyMs / divisor), amount, everyMs, divisor);
}

/** How many parts a debt may lack, so that the time until they are paid off stays exact. */
export function deepestAt(plan: Plan, cells: Cells, at: number): number {
  const amount = cells[at + AMOUNT] as number;
  if (isOwn(plan, cells, at) || amount % divisorAt(plan, cells, at) === 0) return deepest;
  return mostMissing(amount, plan.unit * plan.divisor);
}

/** Notes the numbers of a plan that charges: the largest of each, unless it begins the state. */
export function note(plan: Plan, cells: Cells, at: number, begins: boolean): void {
  const amount = amountOf(plan);
  if (begins || (cells[at + QUOTA] as number) < plan.quota) cells[at + QUOTA] = plan.quota;
  if (begins || (cells[at + AMOUNT] as number) < amount) cells[at + AMOUNT] = amount;
}

/** The parts of a plan that come in each millisecond at the fastest pace of those that charged the state. */
export function fastestFlow(plan: Plan, cells: Cells, at: number): number {
  return Math.max(plan.flow, Math.ceil((cells[at + AMOUNT] as number) / plan.divisor));
}
