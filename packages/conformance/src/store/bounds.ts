import * as assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { Decision, Limiter, Policy } from "@floodgate/core";
import * as fc from "fast-check";
import { forgivingPolicies, mostIn, policies } from "./algorithms.js";
import { Model } from "./model.js";
import { playAll, type ScriptOptions, type Step, scriptsOf } from "./scripts.js";
import type { Suite, World } from "./world.js";

/** Decisions match each algorithm's definition, and never admit more than the policy allows. */
export function boundCases(suite: Suite): void {
  suite.it("every decision, refund and settlement matches the algorithm's definition, even when the clock jumps", async (world) => {
    const everything: ScriptOptions = { refunds: true, settles: true, jumps: true, impossible: true };
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, everything), ([policy, steps]) => agreesWithModel(world, policy, steps)),
      world.runs(400),
    );
  });

  suite.it("every decision, refund and settlement matches the algorithm's definition when the clock steps back a little", async (world) => {
    const options: ScriptOptions = { refunds: true, settles: true, backwards: true };
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, options), ([policy, steps]) => agreesWithModel(world, policy, steps)),
      world.runs(400),
    );
  });

  suite.it("no interval of time admits more units than the policy allows", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, { backwards: true, longest: 40 }), async ([policy, steps]) => {
        const admitted = await admissions(world, policy, steps);
        for (let i = 0; i < admitted.length; i++) {
          let units = 0;
          for (const decision of admitted.slice(i)) {
            units += decision.cost;
            const stretchMs = decision.atMs - (admitted[i] as Decision).atMs;
            const most = mostIn(policy, (admitted[i] as Decision).atMs, stretchMs);
            assert.ok(BigInt(units) <= most, `${units} units within ${stretchMs} ms, and ${most} at most`);
          }
        }
      }),
      world.runs(200),
    );
  });

  suite.it("requests of one moment are decided one after the other", async (world) => {
    const request = fc.record({ key: fc.constantFrom("hot", "hot", "hot", "other"), cost: fc.constantFrom(1, 1, 1, 2, 5) });
    const rounds = fc.array(fc.array(request, { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(policies, rounds, fc.nat(2000), async (policy, rounds, pauseMs) => {
        const limiter = world.limiter(policy);
        const models = { hot: new Model(policy), other: new Model(policy) };
        for (const requests of rounds) {
          world.nowMs += pauseMs;
          await agreesAtOnce(world, limiter, models, requests);
        }
      }),
      world.runs(100),
    );
  });

  suite.it("concurrent requests: exactly as many pass as the policy allows", async (world) => {
    await fc.assert(
      fc.asyncProperty(forgivingPolicies, fc.integer({ min: 1, max: 40 }), async (policy, requests) => {
        const limiter = world.limiter(policy);
        const decisions = await Promise.all(Array.from({ length: requests }, async () => await limiter.consume("key")));
        const passed = decisions.filter((decision) => decision.allowed).length;
        const queued = policy.algorithm === "leaky-bucket" ? Math.floor((policy.maxDelayMs * policy.leak) / policy.everyMs) + 1 : requests;
        assert.equal(passed, Math.min(requests, policy.quota, queued));
      }),
      world.runs(100),
    );
  });
}

/** Plays steps on a key, peeks after each, and compares every answer with the model's. */
export async function agreesWithModel(world: World, policy: Policy, steps: readonly Step[]): Promise<void> {
  const limiter = world.limiter(policy);
  const model = new Model(policy);
  const key = world.fresh();
  const settled = new Set<number>();
  const decisions: Decision[] = [];
  const lives: number[] = [];
  for (const [index, step] of steps.entries()) {
    world.nowMs = step.atMs;
    if ("cost" in step) {
      const decision = await limiter.consume(key, { cost: step.cost });
      decisions[index] = decision;
      assert.deepEqual(verdictOf(decision), model.consume(step.atMs, step.cost), `step ${index}: ${shown(step)}`);
      lives[index] = model.life;
    } else {
      const [of, realCost] = "refund" in step ? [step.refund, 0] : [step.settle, step.realCost];
      const decision = decisions[of] as Decision;
      const due = decision.allowed && !settled.has(of);
      settled.add(of);
      const change = due ? model.settle(step.atMs, decision, realCost, lives[of] as number) : 0;
      const units = "refund" in step ? -(await limiter.refund(key, decision)) : await limiter.settle(key, decision, realCost);
      assert.equal(units + 0, change + 0, `step ${index}: ${shown(step)}`);
    }
    const [look, seen] = await Promise.all([limiter.peek(key), limiter.keyState(key)]);
    assert.deepEqual(verdictOf(look), model.peek(step.atMs), `peek after step ${index}: ${shown(step)}`);
    assert.deepEqual(seen.states[0].state, model.keyState(step.atMs), `inspection after step ${index}: ${shown(step)}`);
    assert.deepEqual([seen.atMs, seen.decision], [step.atMs, look], `inspection after step ${index}: ${shown(step)}`);
  }
}

/** Sends requests of one moment. Some order explains the decisions of a key: no store has to keep that of the calls. */
export async function agreesAtOnce(
  world: World,
  limiter: Limiter,
  models: Record<string, Model>,
  requests: readonly { readonly key: string; readonly cost: number }[],
): Promise<void> {
  const decisions = await Promise.all(requests.map(({ key, cost }) => limiter.consume(key, { cost })));
  const all = requests.map(({ key, cost }, i) => ({ key, cost, verdict: verdictOf(decisions[i] as Decision) }));
  for (const [key, model] of Object.entries(models)) {
    const ofKey = all.filter((one) => one.key === key);
    const after = afterAll(model, world.nowMs, ofKey);
    assert.ok(after, `no order explains the decisions ${JSON.stringify(ofKey)}`);
    models[key] = after;
  }
}

interface Decided {
  readonly cost: number;
  readonly verdict: object;
}

/** The model after all decisions, in the first order that explains them. Undefined if no order does. */
function afterAll(model: Model, nowMs: number, decided: readonly Decided[]): Model | undefined {
  if (decided.length === 0) return model;
  for (const [i, { cost, verdict }] of decided.entries()) {
    const after = model.copy();
    if (!isDeepStrictEqual(after.consume(nowMs, cost), verdict)) continue;
    const found = afterAll(after, nowMs, [...decided.slice(0, i), ...decided.slice(i + 1)]);
    // One that changes nothing may as well come first.
    if (found !== undefined || isDeepStrictEqual(after.keyState(nowMs), model.keyState(nowMs))) return found;
  }
  return undefined;
}

/** The fields of a decision that the model computes. */
export function verdictOf({ allowed, limit, remaining, retryAfterMs, resetAfterMs, delayMs, atMs }: Decision): object {
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs, delayMs, atMs };
}

function shown(step: Step): string {
  return JSON.stringify(step);
}

async function admissions(world: World, policy: Policy, steps: readonly Step[]): Promise<Decision[]> {
  const outcomes = await playAll(world, world.limiter(policy), "key", steps);
  return (outcomes as Decision[]).filter((decision) => decision.allowed);
}
