import type { Cells } from "./algorithm.js";
import { longestDebtMs, mostMissing } from "./debt.js";
import { divisorOf, type Rate, rescale, takesMs } from "./rate.js";

/*
 * Several plans may charge one bucket. The state keeps the largest of each of their numbers, as if one plan had all of these. It uses that
 * plan's parts, and it ends when that plan's bucket is full (or its queue empty). Then it ends for all plans, and a store may delete it.
 * So together the plans never admit more than that plan alone.
 */

/**
 * The state of a smooth bucket or a queue: the level (for a queue, the backlog) after the last charge, in the state's parts; the time of
 * that charge; the largest quota and amount. A quota of 0 means that the key was not used.
 */
export const bucketCells: readonly ["level", "time", "quota", "amount"] = ["level", "time", "quota", "amount"];
export const LEVEL: number = bucketCells.indexOf("level");
export const TIME: number = bucketCells.indexOf("time");
export const QUOTA: number = bucketCells.indexOf("quota");
export const AMOUNT: number = bucketCells.indexOf("amount");

type Plan = Rate & { readonly quota: number };

/** The units that arrive, or drain, in `everyMs` under a plan. */
export function amountOf({ flow, divisor }: Plan): number {
  return flow * divisor;
}

/** Whether a state has exactly this plan's numbers. It has if only one plan charges the key. */
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

/** The time that this many parts of a state take. */
export function takesAt(plan: Plan, cells: Cells, at: number, parts: number): number {
  if (isOwn(plan, cells, at)) return Math.ceil(parts / plan.flow);
  return takesMs(parts, cells[at + AMOUNT] as number, plan.unit * plan.divisor, divisorAt(plan, cells, at));
}

/** The parts that flow under this plan from `time` until now, rounded down. */
export function flowed({ unit, flow }: Plan, parts: number, time: number, nowMs: number): number {
  return nowMs > time ? rescale((nowMs - time) * flow, unit, parts) : 0;
}

/**
 * Whether another plan can have the numbers of a state: it takes ten years to fill at most, or as long as this plan. So no stored number
 * makes a key wait for longer.
 */
export function isCredible(plan: Plan, cells: Cells, at: number): boolean {
  return isOwn(plan, cells, at) || takesAt(plan, cells, at, fullAt(plan, cells, at)) <= Math.max(plan.spanMs, longestDebtMs);
}

/** How far ahead of the clock a state may be when this plan charges it: the span of a plan with the largest numbers. */
export function spanAt(plan: Plan, cells: Cells, at: number): number {
  const quota = Math.max(cells[at + QUOTA] as number, plan.quota);
  const amount = Math.max(cells[at + AMOUNT] as number, amountOf(plan));
  const everyMs = plan.unit * plan.divisor;
  const divisor = divisorOf(quota, amount, everyMs);
  return takesMs(quota * (everyMs / divisor), amount, everyMs, divisor);
}

/** The most parts that a state may lack. */
export function deepestAt(plan: Plan, cells: Cells, at: number): number {
  return mostMissing(cells[at + QUOTA] as number, cells[at + AMOUNT] as number, plan.unit * plan.divisor, unitAt(plan, cells, at));
}

/** Stores the numbers of a plan that charges: the largest of each, or the plan's own if it begins the state. */
export function note(plan: Plan, cells: Cells, at: number, begins: boolean): void {
  const amount = amountOf(plan);
  if (begins || (cells[at + QUOTA] as number) < plan.quota) cells[at + QUOTA] = plan.quota;
  if (begins || (cells[at + AMOUNT] as number) < amount) cells[at + AMOUNT] = amount;
}

/** The parts of this plan that arrive each millisecond at the fastest rate of the plans that charged the state. */
export function fastestFlow(plan: Plan, cells: Cells, at: number): number {
  return Math.max(plan.flow, Math.ceil((cells[at + AMOUNT] as number) / plan.divisor));
}
