import { createLimiter, type Decision, slidingWindowLog } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import type { RedisServer } from "@floodgate/test-servers";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { redisStore } from "../src/index.js";
import { patienceMs } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

let server: RedisServer;
let redis: Redis;
useRedis((started, client) => {
  server = started;
  redis = client;
});

const windowMs = 2000;
let nowMs = 1_789_948_800_000;
const clock = (): number => nowMs;
let names = 0;

/** The same log in Redis and in memory. */
function logs(limit: number, countRejected: boolean) {
  const policy = slidingWindowLog({ limit, window: windowMs, countRejected });
  return [redisStore(redis, { clock, prefix: `log-${names++}` }), memoryStore({ clock })].map((store) =>
    createLimiter<"sync" | "async">({ name: "log", policy, store, timeoutMs: patienceMs }),
  );
}

type Act =
  | { readonly act: "consume"; readonly cost: number; readonly afterMs: number }
  | { readonly act: "charge"; readonly cost: number; readonly afterMs: number }
  | { readonly act: "settle"; readonly which: number; readonly cost: number; readonly afterMs: number };

const afterMs = fc.oneof(
  { weight: 8, arbitrary: fc.nat(3) },
  { weight: 1, arbitrary: fc.nat(700) },
  { weight: 1, arbitrary: fc.integer({ min: -20, max: 0 }) },
);
/** The charge to settle, from the newest: now and then one of the newest, else any. */
const which = fc.oneof(fc.nat(5), fc.nat(600), fc.integer({ min: 240, max: 260 }));
const realCost = fc.oneof({ weight: 6, arbitrary: fc.nat(5) }, { weight: 1, arbitrary: fc.nat(2 ** 52) });
const consume = fc.record({ act: fc.constant("consume" as const), cost: fc.integer({ min: 1, max: 3 }), afterMs });
const settle = fc.record({ act: fc.constant("settle" as const), which, cost: realCost, afterMs });
const charge = fc.record({ act: fc.constant("charge" as const), cost: realCost.map((units) => Math.max(units, 1)), afterMs });
const lives = fc.record({
  countRejected: fc.boolean(),
  before: fc.integer({ min: 240, max: 600 }),
  acts: fc.array(
    fc.oneof({ weight: 2, arbitrary: consume }, { weight: 1, arbitrary: charge }, { weight: 6, arbitrary: settle as fc.Arbitrary<Act> }),
    { minLength: 20, maxLength: 60 },
  ),
});

test("a long log is settled in Redis as in memory, and never counts less than an exact log", { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.noShrink(lives), async ({ countRejected, before, acts }) => {
      const [there, here] = logs(700, countRejected) as [ReturnType<typeof logs>[number], ReturnType<typeof logs>[number]];
      const charges: { readonly theirs: Decision; readonly ours: Decision; units: number; readonly index: number }[] = [];
      const recorded: { readonly atMs: number; readonly units: number }[] = [];
      const newestMs = () => Math.max(charges.at(-1)?.theirs.atMs ?? 0, recorded.at(-1)?.atMs ?? 0);
      let isExact = !countRejected;
      let latestMs = 0;
      const growing = Array.from(
        { length: before },
        (_, i): Act => ({ act: "consume", cost: 1 + (i % 7 === 0 ? 1 : 0), afterMs: 1 + (i % 2) }),
      );
      for (const [i, act] of [...growing, ...acts].entries()) {
        nowMs += act.afterMs;
        latestMs = Math.max(latestMs, nowMs);
        if (act.act === "consume") {
          const [theirs, ours] = [await there.consume("k", { cost: act.cost }), await here.consume("k", { cost: act.cost })];
          expect(theirs).toEqual(ours);
          if (theirs.allowed) charges.push({ theirs, ours, units: act.cost, index: charges.length });
        } else if (act.act === "charge") {
          const units = await there.charge("k", act.cost);
          expect(units).toBe(await here.charge("k", act.cost));
          recorded.push({ atMs: Math.max(nowMs, newestMs()), units });
        } else {
          const charge = charges.at(-1 - act.which);
          if (charge === undefined) continue;
          const change = await there.settle("k", charge.theirs, act.cost);
          expect(change).toBe(await here.settle("k", charge.ours, act.cost));
          charge.units += change;
          if (act.which > 200) isExact = false;
        }
        if (i < before) continue;
        const [theirs, ours] = [await there.keyState("k"), await here.keyState("k")];
        expect(theirs).toEqual(ours);
        // A settlement too far back may drop units that have left the window. A clock that steps back does not bring those back.
        const untilMs = Math.max(nowMs, newestMs(), isExact ? 0 : latestMs);
        const all = [...charges.map(({ theirs: { atMs }, units }) => ({ atMs, units })), ...recorded];
        const counting = all.filter(({ atMs }) => atMs > untilMs - windowMs);
        const exact = counting.reduce((sum, { units }) => sum + units, 0);
        if (isExact) expect(ours.decision.used).toBe(Math.min(exact, 700));
        else if (!countRejected) expect(ours.decision.used).toBeGreaterThanOrEqual(Math.min(exact, 700));
      }
      nowMs += 10 * windowMs;
    }),
    { numRuns: 40 },
  );
});

test("a settlement of a long log writes a part of it in place, and refunds make no string longer", async () => {
  /** How often the script of one settlement calls each command. */
  const callsOf = async (act: () => Promise<unknown>): Promise<Map<string, number>> => {
    await server.command("CONFIG", "RESETSTAT");
    await act();
    const stats = Object.entries(await server.info("commandstats"));
    return new Map(stats.map(([name, text]) => [name.replace("cmdstat_", ""), Number(/calls=(\d+)/.exec(text)?.[1])]));
  };
  for (const which of [0, 300]) {
    const counts: number[] = [];
    for (const length of [600, 1200]) {
      const [log] = logs(10_000, false) as [ReturnType<typeof logs>[number]];
      const charges: Decision[] = [];
      for (let i = 0; i < length; i++) {
        nowMs++;
        charges.push(await log.consume("k"));
      }
      const calls = await callsOf(async () => log.refund("k", charges.at(-1 - which) as Decision));
      expect([calls.get("setrange"), calls.get("set")]).toEqual([1, undefined]);
      counts.push(calls.get("getrange") as number);
      const monitor = await server.monitor();
      await log.settle("k", charges.at(-5) as Decision, 3);
      const reads = (await monitor.lines()).filter((line) => / lua\] "(MGET|GET)" /.test(line));
      monitor.stop();
      // To read a value as a whole would cost by its length.
      expect(reads.filter((line) => !line.endsWith(':blocks"'))).toEqual([]);
      expect(reads).toHaveLength(1);
      for (let i = 0; i < 200; i++) {
        nowMs++;
        await log.refund("k", await log.consume("k"));
      }
      const [key] = await redis.keys(`log-${names - 1}:*`);
      expect(await redis.strlen(key as string)).toBeLessThan(14 * (length + 4));
    }
    // A binary search takes one step more.
    expect((counts[1] as number) - (counts[0] as number)).toBeLessThan(6);
  }
});
