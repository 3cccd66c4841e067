import type { Decision, Limiter, Policy } from "@floodgate/core";
import * as fc from "fast-check";
import { startMs, type World } from "./world.js";

/** A request, or a refund or settlement of the decision of an earlier step. */
export type Step = { readonly atMs: number } & (
  | { readonly cost: number }
  | { readonly refund: number }
  | { readonly settle: number; readonly realCost: number }
);

export interface ScriptOptions {
  /** Include refunds of earlier decisions. */
  refunds?: boolean;
  /** Include settlements of earlier decisions: from nothing up to several quotas above the reserved cost. */
  settles?: boolean;
  /** The clock sometimes steps back, by at most the policy's span. */
  backwards?: boolean;
  /** The clock also jumps ahead and back: by spans, hours or a year. */
  jumps?: boolean;
  /** Include costs above the quota. */
  impossible?: boolean;
  longest?: number;
}

const yearMs = 365 * 86_400_000;

/** The steps of one key: bursts, pauses and edges on the scale of the policy. */
export function scripts(policy: Policy, options: ScriptOptions = {}): fc.Arbitrary<Step[]> {
  const { spanMs } = policy;
  const pace = Math.ceil(spanMs / policy.quota);
  const moves = [
    { weight: 4, arbitrary: fc.constantFrom(0, 0, 1) },
    { weight: 4, arbitrary: fc.integer({ min: 0, max: 2 * pace }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: spanMs + 1 }) },
    { weight: 1, arbitrary: fc.constantFrom(pace, spanMs - 1, spanMs, spanMs + 1, 2 * spanMs) },
  ];
  if (options.backwards || options.jumps) moves.push({ weight: 2, arbitrary: fc.integer({ min: -spanMs, max: -1 }) });
  if (options.jumps) moves.push({ weight: 1, arbitrary: fc.constantFrom(-spanMs - 1, -2 * spanMs, -3_600_000, yearMs, -yearMs) });
  const costs = [
    { weight: 3, arbitrary: fc.constant(1) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: policy.quota }) },
  ];
  if (options.impossible)
    costs.push({ weight: 1, arbitrary: fc.constantFrom(policy.quota + 1, 2 * policy.quota + 1, Number.MAX_SAFE_INTEGER) });
  const step = fc.record({
    byMs: fc.oneof(...moves),
    cost: fc.oneof(...costs),
    change: often(options.refunds === true || options.settles === true, fc.nat(20)),
    realCost: often(options.settles === true, fc.oneof(fc.nat(policy.quota), fc.nat(4 * policy.quota))),
  });
  return fc
    .tuple(fc.nat(spanMs), fc.array(step, { minLength: 1, maxLength: options.longest ?? 25, size: "max" }))
    .map(([offsetMs, made]) => {
      let nowMs = startMs + offsetMs;
      let latestMs = nowMs;
      const requests: number[] = [];
      return made.map(({ byMs, cost, change, realCost }, index): Step => {
        nowMs = options.jumps ? nowMs + byMs : Math.max(nowMs + byMs, latestMs - spanMs);
        latestMs = Math.max(latestMs, nowMs);
        // A small number selects a recent request: recent ones still count.
        const of = change < 0 ? undefined : requests[requests.length - 1 - (change % Math.max(requests.length, 1))];
        // A slot is given back, whatever it has cost.
        const given = policy.algorithm === "concurrency" ? 0 : realCost;
        if (of !== undefined && realCost >= 0) return { atMs: nowMs, settle: of, realCost: given };
        if (of !== undefined && options.refunds === true) return { atMs: nowMs, refund: of };
        requests.push(index);
        return { atMs: nowMs, cost };
      });
    });
}

/** For each step, a number from 0, or -1 for none. */
function often(wanted: boolean, some: fc.Arbitrary<number>): fc.Arbitrary<number> {
  return wanted ? fc.oneof({ weight: 2, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: some }) : fc.constant(-1);
}

/** A policy, and the steps of a key under it. */
export function scriptsOf(which: fc.Arbitrary<Policy>, options: ScriptOptions = {}): fc.Arbitrary<[Policy, Step[]]> {
  return which.chain((policy) => fc.tuple(fc.constant(policy), scripts(policy, options)));
}

/** The result of a step: a decision, or the units that a refund gave back or a settlement changed. */
export type Outcome = Decision | number;

/** Plays one step. `earlier` holds the outcomes of the steps before it. */
export async function play(world: World, limiter: Limiter, key: string, step: Step, earlier: readonly Outcome[]): Promise<Outcome> {
  world.nowMs = step.atMs;
  if ("cost" in step) return await limiter.consume(key, { cost: step.cost });
  if ("refund" in step) return await limiter.refund(key, earlier[step.refund] as Decision);
  return await limiter.settle(key, earlier[step.settle] as Decision, step.realCost);
}

/** Plays steps on a key, and returns the outcome of each. */
export async function playAll(world: World, limiter: Limiter, key: string, steps: readonly Step[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const step of steps) outcomes.push(await play(world, limiter, key, step, outcomes));
  return outcomes;
}

/** A fresh key with the same history. A state cannot be copied, so it is replayed. */
export async function replayed(world: World, limiter: Limiter, steps: readonly Step[]): Promise<string> {
  const key = world.fresh();
  await playAll(world, limiter, key, steps);
  return key;
}
