import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { consumeAll, type Decision, type Policy } from "@floodgate/core";
import { toPolicy } from "@floodgate/core/rules";
import type { Suite, World } from "./world.js";

/** One step and its expected decision; `retryAfterMs: null` means Infinity. */
interface Expected {
  readonly allowed?: boolean;
  readonly remaining?: number;
  readonly retryAfterMs?: number | null;
  readonly resetAfterMs?: number;
  readonly delayMs?: number;
}

interface VectorStep extends Expected {
  readonly atMs: number;
  readonly cost?: number;
  readonly refund?: number;
}

interface VectorCase {
  readonly name: string;
  readonly policy: Record<string, unknown>;
  readonly steps: readonly VectorStep[];
}

interface SeveralCase {
  readonly name: string;
  readonly policies: readonly Record<string, unknown>[];
  readonly steps: readonly {
    readonly atMs: number;
    readonly cost: number;
    readonly allowed: boolean;
    readonly decisions: readonly Expected[];
  }[];
}

const fields = ["allowed", "remaining", "retryAfterMs", "resetAfterMs", "delayMs"] as const;

/** Reproduces the worked examples from the literature and the brute-force cases: every field of every step. */
export function vectorCases(suite: Suite): void {
  for (const file of ["worked", "random"]) {
    for (const vector of read<VectorCase>(file)) suite.it(vector.name, (world) => checkCase(world, vector));
  }
  for (const vector of read<SeveralCase>("several")) suite.it(vector.name, (world) => checkSeveral(world, vector));
}

function read<T>(file: string): T[] {
  // Two folders up, from src as well as from dist.
  return JSON.parse(readFileSync(join(__dirname, "..", "..", "vectors", `${file}.json`), "utf8")) as T[];
}

async function checkCase(world: World, vector: VectorCase): Promise<void> {
  const limiter = world.limiter(policyOf(vector.policy));
  const decisions: (Decision | undefined)[] = [];
  for (const [index, step] of vector.steps.entries()) {
    world.nowMs = step.atMs;
    if (step.refund === undefined) {
      const decision = await limiter.consume("key", { cost: step.cost as number });
      decisions[index] = decision;
      check(decision, step, `step ${index}`);
    } else {
      await limiter.refund("key", decisions[step.refund] as Decision);
      check(await limiter.peek("key"), step, `step ${index}, the look after a refund`);
    }
  }
}

async function checkSeveral(world: World, vector: SeveralCase): Promise<void> {
  const limiters = vector.policies.map((policy) => world.limiter(policyOf(policy)));
  for (const [index, step] of vector.steps.entries()) {
    world.nowMs = step.atMs;
    const combined = await consumeAll(limiters.map((limiter) => ({ limiter, key: "key", cost: step.cost })));
    assert.equal(combined.allowed, step.allowed, `step ${index}: allowed`);
    assert.equal(combined.all.length, step.decisions.length, `step ${index}: one decision a policy`);
    step.decisions.forEach((expected, i) => {
      check(combined.all[i] as Decision, expected, `step ${index}, policy ${i}`);
    });
  }
}

function check(decision: Decision, expected: Expected, where: string): void {
  for (const field of fields) {
    const value = expected[field];
    if (value !== undefined) assert.equal(decision[field], value ?? Number.POSITIVE_INFINITY, `${where}: ${field}`);
  }
}

/** Vectors give durations in milliseconds with names ending in `Ms`; policies take durations. */
function policyOf(written: Record<string, unknown>): Policy {
  const { windowMs, everyMs, ...rest } = written;
  if (windowMs !== undefined) rest["window"] = `${windowMs}ms`;
  if (everyMs !== undefined) rest["every"] = `${everyMs}ms`;
  return toPolicy("vectors", rest);
}
