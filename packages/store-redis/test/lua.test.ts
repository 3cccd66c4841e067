import { fixedWindow, gcra, leakyBucket, type Policy, slidingWindowCounter, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { kindOf } from "../src/algorithms.js";
import { largePlans, orHeld, type Plans, shortPlans, smallPlans } from "./plans.js";
import { type Act, Script, type Step, Twin, whicheverState } from "./twin.js";

let server: RedisServer;
let script: Script;
beforeAll(async () => {
  server = await startRedis();
  script = await Script.load(server);
});
afterAll(() => server?.stop());

let keys = 0;
const freshKey = (): string => `key:${keys++}`;

const startMs = 1_789_948_800_000;
const yearMs = 365 * 86_400_000;

/** Steps at one time. */
interface Moment {
  readonly byMs: number;
  /** Whether the clock first advances to the start of a window. */
  readonly toEdge: boolean;
  readonly acts: readonly Act[];
}

function moments(plans: Plans, longest: number): fc.Arbitrary<Moment[]> {
  const { spanMs, quota } = plans[0] as Policy;
  const pace = Math.ceil(spanMs / quota);
  const byMs = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(0, 0, 1) },
    { weight: 4, arbitrary: fc.integer({ min: 0, max: 2 * pace }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: spanMs + 1 }) },
    { weight: 1, arbitrary: fc.constantFrom(pace, spanMs - 1, spanMs, spanMs + 1, 2 * spanMs) },
    { weight: 2, arbitrary: fc.integer({ min: -spanMs, max: -1 }) },
    { weight: 1, arbitrary: fc.constantFrom(-spanMs - 1, -2 * spanMs, -3_600_000, yearMs, -yearMs) },
  );
  const cost = fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    { weight: 3, arbitrary: fc.integer({ min: 1, max: quota }) },
    { weight: 1, arbitrary: fc.constantFrom(quota + 1, 2 * quota + 1, Number.MAX_SAFE_INTEGER) },
  );
  // A policy that holds units stands for three limits: see `Twin`.
  const plan = fc.nat((isHeld(plans) ? 3 : 1) * plans.length - 1);
  const realCost = fc.oneof(
    { weight: 2, arbitrary: fc.constant(0) },
    { weight: 4, arbitrary: fc.nat(3 * quota) },
    { weight: 1, arbitrary: fc.constantFrom(2 ** 40, 2 ** 52, Number.MAX_SAFE_INTEGER) },
  );
  const act: fc.Arbitrary<Act> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ plan, consume: cost }) },
    { weight: 2, arbitrary: fc.record({ plan, consume: cost, times: fc.integer({ min: 2, max: 6 }) }) },
    { weight: 1, arbitrary: fc.record({ plan, peek: fc.constantFrom("brief" as const, "whole") }) },
    { weight: 2, arbitrary: fc.record({ plan, settle: fc.oneof(fc.nat(2), fc.nat(20)), cost: realCost }) },
    { weight: 1, arbitrary: fc.record({ plan, charge: realCost.map((units) => Math.max(units, 1)) }) },
  );
  const toEdge = fc.nat(4).map((n) => n === 0);
  return fc.array(fc.record({ byMs, toEdge, acts: fc.array(act, { minLength: 1, maxLength: 4 }) }), {
    minLength: 1,
    maxLength: longest,
    size: "max",
  });
}

/** The widths of windows, sub-windows and refills. */
function gridOf([policy]: Plans): number {
  if (policy === undefined) return 1;
  if (policy.algorithm === "calendar-window") return 3_600_000;
  if (policy.algorithm === "concurrency") return policy.holdMs;
  return "bucketMs" in policy ? policy.bucketMs : "windowMs" in policy ? policy.windowMs : policy.everyMs;
}

/** Held units that have ended are held again if the clock steps back, until they are forgotten: in Redis later than in core. */
const isHeld = ([policy]: Plans): boolean => policy?.holdMs !== undefined && policy.algorithm !== "concurrency";

const lives = (plans: fc.Arbitrary<Plans>, longest = 25): fc.Arbitrary<[Plans, Moment[]]> =>
  orHeld(plans).chain((made) => fc.tuple(fc.constant(made), moments(made, longest)));

describe("the Lua twins", () => {
  for (const [name, plans] of [
    ["small", smallPlans],
    ["large", largePlans],
  ] as const) {
    it(`decide exactly as core does, with ${name} numbers`, async () => {
      const start = fc.oneof(fc.constant(startMs), fc.constantFrom(0, -1, -1_000_000, -startMs));
      await fc.assert(
        fc.asyncProperty(lives(plans), start, fc.nat(100_000), async ([made, life], aboutMs, offsetMs) => {
          const twin = new Twin(server, script, freshKey(), made);
          const gridMs = gridOf(made);
          let nowMs = aboutMs + offsetMs;
          for (const { byMs, toEdge, acts } of life) {
            const nextMs = toEdge ? Math.ceil((nowMs + byMs) / gridMs) * gridMs : nowMs + byMs;
            // Clocks never return unsafe integers or -0.
            if (Number.isSafeInteger(nextMs) && (nextMs > nowMs || !isHeld(made))) nowMs = nextMs + 0;
            await twin.play(nowMs, acts);
          }
        }),
        runs(300),
      );
    });
  }

  it("decide exactly as core does by the server's clock, with expiring keys", async () => {
    await fc.assert(
      fc.asyncProperty(lives(shortPlans, 40), async ([made, life]) => {
        const twin = new Twin(server, script, freshKey(), made);
        for (const { acts } of life) await twin.play(undefined, acts);
      }),
      runs(150),
    );
  });

  it("settle debts near 2^53 in narrow sub-windows as core does, also when the clock then steps back", async () => {
    const half = 2 ** 49;
    const units = fc.constantFrom(1, half, 2 ** 52, Number.MAX_SAFE_INTEGER);
    const moment = fc.record({
      byMs: fc.integer({ min: -3, max: 4 }),
      act: fc.oneof(
        { weight: 2, arbitrary: fc.record({ plan: fc.nat(1), consume: fc.constantFrom(1, half) }) },
        { weight: 3, arbitrary: fc.record({ plan: fc.constant(0), settle: fc.nat(2), cost: units }) },
        { weight: 1, arbitrary: fc.record({ plan: fc.constant(0), charge: units }) },
      ) as fc.Arbitrary<Act>,
    });
    const life = fc.array(moment, { minLength: 8, maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), life, async (buckets, moments) => {
        const plans = [half, 5].map((limit) => slidingWindowCounter({ limit, window: `${BigInt(buckets)}ms`, buckets }));
        const twin = new Twin(server, script, freshKey(), plans);
        let nowMs = startMs;
        for (const { byMs, act } of moments) {
          nowMs += byMs;
          await twin.play(nowMs, [act, { plan: 1, peek: "brief" }]);
        }
      }),
      runs(1000),
    );
  });

  it("search long logs as core does", async () => {
    const plan = fc.record({ limit: fc.integer({ min: 100, max: 400 }), countRejected: fc.boolean() });
    const moment = fc.record({
      byMs: fc.oneof({ weight: 60, arbitrary: fc.nat(4) }, { weight: 1, arbitrary: fc.integer({ min: -1000, max: 700 }) }),
      act: fc.oneof(
        { weight: 40, arbitrary: fc.record({ plan: fc.nat(20).map((n) => Math.max(0, n - 18)), consume: fc.integer({ min: 1, max: 4 }) }) },
        { weight: 2, arbitrary: fc.record({ plan: fc.nat(2), consume: fc.integer({ min: 1, max: 400 }) }) },
        { weight: 1, arbitrary: fc.record({ plan: fc.nat(2), settle: fc.nat(400), cost: fc.oneof(fc.constant(0), fc.nat(100)) }) },
        { weight: 1, arbitrary: fc.record({ plan: fc.nat(2), charge: fc.integer({ min: 1, max: 50 }) }) },
      ) as fc.Arbitrary<Act>,
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(plan, { minLength: 1, maxLength: 3 }),
        fc.array(moment, { minLength: 600, maxLength: 600 }),
        async (numbers, life) => {
          const plans = numbers.map((options) => slidingWindowLog({ window: 1000, ...options }));
          const twin = new Twin(server, script, freshKey(), plans);
          let nowMs = startMs;
          for (const { byMs, act } of life) {
            nowMs += byMs;
            await twin.play(nowMs, [act]);
          }
        },
      ),
      runs(10),
    );
  });

  it.each([
    ["an entry that lost one unit", 2, "3 at 0, 3 at 10, 3 at 20, 1 at 30, 1 at 40, 3 at 50"],
    ["an entry that outlived all later ones", 0, "4 at 0, 4 at 10, 2 at 20, 9 at 20"],
  ])("refund as core does %s to logged rejections", async (_, settle, requests) => {
    const twin = new Twin(server, script, freshKey(), [slidingWindowLog({ limit: 10, window: 1000, countRejected: true })]);
    for (const request of requests.split(", ")) {
      const [consume, atMs] = request.split(" at ").map(Number) as [number, number];
      await twin.play(startMs + atMs, [{ plan: 0, consume }]);
    }
    await twin.play(startMs + 60, [
      { plan: 0, settle, cost: 0 },
      { plan: 0, peek: "brief" },
    ]);
  });

  it.each([1, 2])(
    "settle a charge of the window before as core does, also when the clock then steps back (buckets: %i)",
    async (buckets) => {
      const twin = new Twin(server, script, freshKey(), [slidingWindowCounter({ limit: 10, window: 1000 * buckets, buckets })]);
      for (const atMs of [0, 1000]) await twin.play(startMs + atMs, [{ plan: 0, consume: 1 }]);
      await twin.play(startMs + 1000 + 1000 * buckets, [{ plan: 0, settle: 0, cost: 2 }]);
      await twin.play(startMs + 999 + 1000 * buckets, [
        { plan: 0, peek: "brief" },
        { plan: 0, settle: 1, cost: 5 },
      ]);
    },
  );

  it("keep the largest debt when a count beside it has left the window", async () => {
    const twin = new Twin(server, script, freshKey(), [slidingWindowCounter({ limit: 10, window: "3ms", buckets: 3 })]);
    const settle: Act = { plan: 0, settle: 0, cost: Number.MAX_SAFE_INTEGER };
    await twin.play(startMs, [{ plan: 0, consume: 1 }]);
    await twin.play(startMs + 1, [{ plan: 0, consume: 1 }, settle]);
    await twin.play(startMs + 4, [settle, { plan: 0, peek: "brief" }]);
  });

  it("append to a long log without rewriting it, and drop expired entries", async () => {
    const [key, policy, requests] = [freshKey(), slidingWindowLog({ limit: 1000, window: 1000 }), 2000];
    await server.command("CONFIG", "RESETSTAT");
    const step: Step = [key, "c", 0, 1];
    await Promise.all(Array.from({ length: requests }, (_, i) => script.run(startMs + 3 * i, [policy], [step])));
    const calls = await server.info("commandstats");
    const callsOf = (command: string) => Number(/calls=(\d+)/.exec(calls[`cmdstat_${command}`] ?? "")?.[1]);
    const counting = Math.ceil(1000 / 3);
    expect(callsOf("setrange")).toBeGreaterThan(0.98 * requests);
    expect(callsOf("set")).toBeLessThanOrEqual(1 + requests / counting);
    expect(await server.command("STRLEN", key)).toBeLessThan(14 * (2 * counting + 2));
  });
});

/** The size of the state's birth, which precedes the layout byte. */
const layoutAt = 7;

describe.each<Policy>([
  fixedWindow({ limit: 10, window: "1m" }),
  slidingWindowCounter({ limit: 10, window: "1m" }),
  slidingWindowCounter({ limit: 10, window: "1m", buckets: 6 }),
  slidingWindowLog({ limit: 10, window: "1m" }),
  tokenBucket({ capacity: 10, refill: 10, every: "1m" }),
  tokenBucket({ capacity: 10, refill: 10, every: "1m", style: "interval" }),
  gcra({ limit: 10, window: "1m" }),
  leakyBucket({ capacity: 10, leak: 10, every: "1m" }),
])("a key of $stateKind", (policy) => {
  it("is deleted by a full refund or a reset", async () => {
    const key = freshKey();
    const taken: Step[] = [2, 1, 3].map((cost) => [key, "c", 0, cost]);
    const back: Step[] =
      policy.algorithm === "leaky-bucket" ? [[key, "d", 0]] : [3, 2, 1].map((cost) => [key, "s", 0, cost, startMs, whicheverState, 0]);
    await script.run(startMs, [policy], taken);
    expect(await server.command("EXISTS", key)).toBe(1);
    await script.run(startMs, [policy], back);
    expect(await server.command("EXISTS", key)).toBe(0);
  });

  it("is overwritten if it held a foreign value", async () => {
    const sound = freshKey();
    const consume = async (key: string) => (await script.run(startMs, [policy], [[key, "c", 0, 3]])).told(startMs, 3);
    const fresh = await consume(sound);
    const ofOtherLayout = freshKey();
    await server.command("COPY", sound, ofOtherLayout);
    await server.command("SETRANGE", ofOtherLayout, layoutAt, "x");
    expect(await consume(ofOtherLayout)).toEqual(fresh);
    const layout = Buffer.from((await server.command("GETRANGE", sound, layoutAt, layoutAt)) as string);
    const size = await server.command("STRLEN", sound);
    const foreign = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 600 }).map((bytes) => Buffer.from(bytes)),
      fc.integer({ min: 1, max: 600 }).map((length) => Buffer.alloc(length, layout)),
    );
    await fc.assert(
      fc.asyncProperty(foreign, async (bytes) => {
        const key = freshKey();
        await server.command("SET", key, bytes);
        expect(await consume(key)).toEqual(fresh);
        expect(await server.command("STRLEN", key)).toBe(size);
        expect(await server.command("PTTL", key)).toBeGreaterThan(0);
      }),
      runs(100),
    );
  });

  it("of another type fails only its own step, and stays unchanged", async () => {
    const [sound, list] = [freshKey(), freshKey()];
    await server.command("RPUSH", list, "one");
    const answer = await script.run(
      startMs,
      [policy],
      [
        [sound, "c", 0, 1],
        [list, "c", 0, 1],
        [list, "p", 0],
        [sound, "c", 0, 2],
      ],
    );
    expect(answer.told(startMs, 1)[0]).toMatchObject({ allowed: true, remaining: 9 });
    expect(answer.next()).toMatch(/^WRONGTYPE/);
    expect(answer.next()).toMatch(/^WRONGTYPE/);
    expect(answer.told(startMs, 2)[0]).toMatchObject({ allowed: true, remaining: 7 });
    expect(await server.command("LRANGE", list, 0, -1)).toEqual(["one"]);
  });
});

it("the kind in a key is unique for each kind of state, and contains no separator", () => {
  const any = fc.oneof(smallPlans, largePlans, shortPlans).map(([policy]) => policy as Policy);
  fc.assert(
    fc.property(any, any, (one, other) => {
      expect(kindOf(one) === kindOf(other)).toBe(one.stateKind === other.stateKind);
      expect(kindOf(one)).toMatch(/^[a-z\d-]+([A-Z\d_+/-]+)?$/);
    }),
  );
});
