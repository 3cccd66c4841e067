import {
  concurrency,
  type Decision,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { asCharge, createLimit, type Limit } from "@floodgate/core/store";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { askedAfterMs, expectCached, listening, maxAgeMs, Process, startAnew, useProcesses, world } from "./changes-processes.js";
import { limitOf, patienceMs, yearly } from "./patient-store.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

useProcesses();

describe("a rejection is not asked for again", () => {
  it.each<[string, (other: Process, limit: Limit) => Promise<unknown>]>([
    ["requests", (other) => other.consume(limitOf(yearly(2)), "other")],
    [
      "a settlement to more",
      async ({ store }, limit) => {
        const charge = await store.consume(limit, "other", 1, patienceMs);
        await store.settle(limit, "other", asCharge(charge), 2, patienceMs);
      },
    ],
    ["a ban", ({ store }, { name }) => store.block(name, "other", 3_600_000, "ban", patienceMs)],
    [
      "a slot that is given back",
      async ({ store }) => {
        const slots = limitOf(concurrency({ limit: 1, hold: "1h" }));
        const charge = await store.consume(slots, "other", 1, patienceMs);
        await store.settle(slots, "other", asCharge(charge), 0, patienceMs);
      },
    ],
  ])("because of another process's %s", async (_, act) => {
    const [here, there] = [await listening(), new Process()];
    const limit = limitOf(yearly(2));
    for (let i = 0; i < 3; i++) await here.consume(limit, "k");
    await act(there, limit);
    await there.answered();
    expect(there.sent).toBe(0);
    await expectCached(here, limit, "k", 3000);
  });

  it("because of this process's refund of another key", async () => {
    const here = await listening();
    const limit = limitOf(yearly(2));
    for (let i = 0; i < 3; i++) await here.consume(limit, "k");
    for (let i = 0; i < 5; i++) {
      const { decision } = await here.consume(limit, "other");
      await here.store.settle(limit, "other", asCharge(decision), 0, patienceMs);
      await expectCached(here, limit, "k", 1000);
    }
  });
});

describe("a rejection is used for maxAgeMs only", () => {
  const usedMs = async (here: Process, policy: Policy = yearly(1)): Promise<number> => {
    const limit = limitOf(policy);
    await here.consume(limit, "k", policy.quota);
    expect((await here.consume(limit, "k")).decision.allowed).toBe(false);
    return (await askedAfterMs(here, limit, "k")).ms;
  };

  it.each([
    tokenBucket({ capacity: 1, refill: 1, every: "1h" }),
    tokenBucket({ capacity: 1, refill: 1, every: "1h", style: "interval" }),
    gcra({ limit: 1, window: "1h" }),
    leakyBucket({ capacity: 1, leak: 1, every: "1h" }),
  ])("of $stateKind, because it flows faster under a larger plan", async (policy) => {
    expect(await usedMs(await listening(), policy)).toBe(maxAgeMs + 100);
  });

  it("within a second after another process's announcement, which covers its changes of that second", async () => {
    const [here, there] = [await listening(), new Process()];
    await there.store.reset(limitOf(yearly(1)), "other", patienceMs);
    world.nowMs += 800;
    expect(await usedMs(here)).toBe(maxAgeMs + 100);
    // That was asked for later.
    expect(await usedMs(here)).toBeGreaterThan(3000);
  });

  it.each<[string, (client: Redis) => Promise<unknown>]>([
    [
      "another program has written its key",
      (client) => client.del(`${world.prefix}:changes`).then(() => client.lpush(`${world.prefix}:changes`, "x")),
    ],
    [
      "the reads fail",
      async (client) => {
        client.eval = (() => Promise.reject(new Error("no permission"))) as never;
      },
    ],
    [
      "the reads are not answered",
      async (client) => {
        client.eval = (() => new Promise(() => undefined)) as never;
      },
    ],
  ])("while %s", async (_, fail) => {
    const here = await listening();
    await fail(here.client as Redis);
    expect(await usedMs(here)).toBe(maxAgeMs + 100);
  });

  it("if maxAgeMs is below a second, and nothing is read then", async () => {
    const here = new Process(false, { denyCache: { maxAgeMs: 999 } });
    expect(await usedMs(here)).toBe(1000);
    expect(here.sent).toBe(0);
  });
});

it("A process announces once a second, however much it gives back, and reads once in three quarters of maxAgeMs, while it rejects", async () => {
  const [here, there] = [await listening(), new Process()];
  const limit = limitOf(yearly(1));
  for (const key of ["a", "a"]) await here.consume(limit, key);
  here.sent = 0;
  for (let i = 0; i < 300; i++) {
    world.nowMs += 10;
    const { decision } = await there.consume(limit, "b");
    await there.store.settle(limit, "b", asCharge(decision), 0, patienceMs);
    await here.consume(limit, "a");
  }
  expect(there.sent).toBe(3);
  expect(here.sent).toBe(3);
  world.nowMs += 10_000;
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect([there.sent, here.sent]).toEqual([3, 3]);
});

/** What another process does, and for how many steps it then does nothing. */
interface Act {
  readonly name: "consume" | "settle" | "reset" | "block" | "ban" | "unblock";
  readonly plan: number;
  readonly key: string;
  readonly cost: number;
  readonly ms: number;
  readonly quiet: number;
}

it("A request is never rejected later than maxAgeMs after another process has made Redis allow it", async () => {
  const kinds: ((size: number) => Policy)[] = [
    (limit) => fixedWindow({ limit, window: "1h" }),
    (limit) => slidingWindowCounter({ limit, window: "1h" }),
    (limit) => slidingWindowCounter({ limit, window: "1h", buckets: 6 }),
    (limit) => slidingWindowLog({ limit, window: "1h" }),
    (limit) => slidingWindowLog({ limit, window: "1h", countRejected: limit > 1 }),
    (size) => tokenBucket({ capacity: size, refill: size ** 6, every: "1h" }),
    (size) => leakyBucket({ capacity: size, leak: size ** 6, every: "1h" }),
  ];
  /** Few of them at a time: any announcement would hide that another is missing. */
  const names = fc.constantFrom<Act["name"][]>(
    ["consume"],
    ["consume", "settle"],
    ["reset"],
    ["block"],
    ["ban", "reset"],
    ["block", "ban", "unblock"],
    ["consume", "settle", "reset", "block", "ban", "unblock"],
  );
  const acts = names.chain((some) => {
    const act = fc.record({
      name: fc.constantFrom(...some),
      plan: fc.nat(1),
      key: fc.constantFrom("a", "b"),
      cost: fc.nat(3),
      ms: fc.constantFrom(1, 3000, 30_000),
      quiet: fc.constantFrom(0, 0, 1, 5, 10),
    });
    return fc.array(act, { minLength: 5, maxLength: 12 });
  });
  let cached = 0;
  const property = fc.asyncProperty(fc.constantFrom(...kinds), acts, fc.integer({ min: 200, max: 600 }), async (kind, acts, stepMs) => {
    startAnew();
    const [here, there] = [await listening(), new Process()];
    const name = `plans-${world.prefix}`;
    const plans = [1, 3].map((size) => createLimit(name, kind(size))) as [Limit, Limit];
    const charges: [Limit, string, Decision][] = [];
    /** Since when Redis has allowed each key. */
    const allowedMs = new Map<string, number>();
    const look = async (): Promise<void> => {
      for (const key of ["a", "b"]) {
        if (!(await there.store.peek(plans[0], key, patienceMs)).allowed) allowedMs.delete(key);
        else if (!allowedMs.has(key)) allowedMs.set(key, world.nowMs);
      }
    };
    const once = async ({ name: act, plan, key, cost, ms }: Act): Promise<void> => {
      const { store } = there;
      const limit = plans[plan] as Limit;
      if (act === "consume") {
        const decision = await store.consume(limit, key, Math.max(cost, 1), patienceMs);
        if (decision.allowed) charges.push([limit, key, decision]);
      } else if (act === "settle") {
        const [limit, key, decision] = charges.pop() ?? [];
        if (limit !== undefined) await store.settle(limit, key as string, asCharge(decision as Decision), cost, patienceMs);
      } else if (act === "reset") await store.reset(limit, key, patienceMs);
      else if (act === "unblock") await store.unblock(name, key, patienceMs);
      else await store.block(name, key, ms, act, patienceMs);
    };
    const ask = async (): Promise<void> => {
      await there.answered();
      await look();
      for (const key of ["a", "b"]) {
        const { decision, isCached } = await here.consume(plans[0], key);
        if (isCached) cached++;
        if (decision.allowed) charges.push([plans[0], key, decision]);
        else expect(world.nowMs - (allowedMs.get(key) ?? world.nowMs)).toBeLessThanOrEqual(maxAgeMs);
      }
      await look();
    };
    for (let i = 0; i < 3; i++) await ask();
    for (const act of acts) {
      await once(act);
      await ask();
      for (let i = 0; i < act.quiet; i++) {
        world.nowMs += stepMs;
        await ask();
      }
    }
  });
  await fc.assert(property, runs(100));
  expect(cached).toBeGreaterThan(500);
});
