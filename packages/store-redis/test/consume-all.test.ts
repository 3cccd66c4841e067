import { type Decision, fixedWindow } from "@floodgate/core";
import { createLimit, decision } from "@floodgate/core/store";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CommandQueues } from "../src/command-queues.js";
import { consumeAll } from "../src/consume-all.js";
import type { KeyedCheck } from "../src/limits.js";
import { KnownLimits } from "../src/limits.js";
import type { Step } from "../src/step.js";

const limit = createLimit("api", fixedWindow({ limit: 10, window: "1m" }));
const known = new KnownLimits(undefined).get(limit);

const checkOf = (key: string): KeyedCheck => ({
  known,
  key,
  redisKey: key,
  cost: 1,
  shadow: false,
  dryRun: false,
});
const told = (allowed: boolean): Decision =>
  decision(limit, 1, { allowed, remaining: 9, retryAfterMs: allowed ? 0 : 1000, resetAfterMs: 1000, delayMs: 0, atMs: 0 });
const sixtyMs = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the refund of a charge in one slot", () => {
  it.each<[string, number, () => Promise<Decision[]>]>([
    ["shares the decision's timeout if another slot rejects", 0, async () => [told(false)]],
    ["gets the full timeout again if another slot fails", 60, () => Promise.reject(new Error("The other slot"))],
  ])("%s", async (_, laterMs, other) => {
    const asked: Step[] = [];
    const answers = [async () => [told(true)], () => sixtyMs().then(other), async () => -1];
    const queues = {
      bySlot: (checks: readonly unknown[]) => checks.map((check) => [check]),
      serverOf: (redisKey: string) => redisKey,
      ask: (step: Step) => answers[asked.push(step) - 1]?.(),
    } as unknown as CommandQueues;
    const whole = Promise.allSettled([consumeAll(queues, [checkOf("a"), checkOf("bb")], 100)]);
    await vi.advanceTimersByTimeAsync(60);
    await whole;
    const [charge, , refund] = asked as [Step, Step, Step];
    expect(refund.redisKey).toBe("a");
    expect(refund.deadlineMs - charge.deadlineMs).toBe(laterMs);
  });
});
