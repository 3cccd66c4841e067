import * as assert from "node:assert/strict";
import * as fc from "fast-check";
import { largestOf, mostIn, variants } from "../../../conformance/src/store/algorithms.js";
import { checkNumbers } from "../../../conformance/src/store/large.js";
import { planOf, plans } from "../../../conformance/src/store/plans.js";
import { startMs, type World } from "../../../conformance/src/store/world.js";
import { type Decision, leakyBucket, type Policy, slidingWindowLog } from "../../src/index.js";
import { asCharge, createLimit, type Limit } from "../../src/store.js";
import { it } from "./in-world.js";

interface Planned {
  readonly name: string;
  readonly plan: (quota: number, pace: number) => Policy;
}

const usual: readonly Planned[] = variants.map((kind) => ({ name: kind.name, plan: (...plan) => planOf(kind, plan) }));

/** Kinds that the other plan tests leave out: logs that record rejections, and variants of the same algorithm. */
const others: readonly Planned[] = [
  {
    name: "sliding log with countRejected",
    plan: (limit) => slidingWindowLog({ limit, window: 1000, countRejected: true }),
  },
  {
    name: "sliding log with countRejected on some plans only",
    plan: (limit, pace) => slidingWindowLog({ limit, window: 1000, countRejected: pace % 2 === 0 }),
  },
  {
    name: "queue with maxDelayMs",
    plan: (capacity, leak) => leakyBucket({ capacity, leak, every: "997ms", maxDelayMs: 100 * (capacity % 7) }),
  },
];

/** One phase in the life of a key. `share` is a part of the largest plan's span. */
type Phase =
  /** One plan sends requests until it is rejected. */
  | { readonly act: "take all"; readonly plan: number }
  /** One plan sends a request every `stepMs`, for `share` of the span. */
  | { readonly act: "trickle"; readonly plan: number; readonly stepMs: number; readonly share: number }
  | { readonly act: "one"; readonly plan: number; readonly share: number }
  | { readonly act: "pause"; readonly share: number }
  | { readonly act: "step back"; readonly byMs: number }
  /** Waits until a plan forgets the state or admits a request, give or take a millisecond. */
  | { readonly act: "wait"; readonly plan: number; readonly reset: boolean; readonly offMs: number }
  /** Settles a recent charge, each at most once, to `factor` times its cost. */
  | { readonly act: "settle"; readonly back: number; readonly factor: number };

const plan = fc.nat(3);
const trickle = fc.record({
  act: fc.constant("trickle" as const),
  plan,
  stepMs: fc.integer({ min: 5, max: 200 }),
  share: fc.double({ min: 0, max: 1.2, noNaN: true }),
});
const takeAll = fc.record({ act: fc.constant("take all" as const), plan });
const pause = fc.record({ act: fc.constant("pause" as const), share: fc.double({ min: 0, max: 0.4, noNaN: true }) });
const wait = fc.record({ act: fc.constant("wait" as const), plan, reset: fc.boolean(), offMs: fc.integer({ min: -1, max: 1 }) });
const phase: fc.Arbitrary<Phase> = fc.oneof(
  { weight: 3, arbitrary: takeAll },
  { weight: 3, arbitrary: trickle },
  { weight: 2, arbitrary: fc.record({ act: fc.constant("one" as const), plan, share: fc.double({ min: 0, max: 1, noNaN: true }) }) },
  { weight: 2, arbitrary: pause },
  { weight: 2, arbitrary: wait },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("step back" as const), byMs: fc.integer({ min: 1, max: 500 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ act: fc.constant("settle" as const), back: fc.nat(5), factor: fc.constantFrom(0, 0, 0.5, 1.5, 3) }),
  },
);
/** One plan takes all, another takes what is refilled, then a pause; repeated, the first plan returns. */
const inTurns: fc.Arbitrary<Phase[]> = fc.tuple(takeAll, trickle, fc.oneof(pause, wait));
const lives: fc.Arbitrary<Phase[]> = fc
  .tuple(
    fc.oneof(inTurns, fc.array(phase, { minLength: 1, maxLength: 8 })),
    fc.integer({ min: 1, max: 4 }),
    fc.array(phase, { maxLength: 4 }),
  )
  .map(([round, rounds, end]) => [...Array.from({ length: rounds }, () => round).flat(), ...end]);

const pace = fc.integer({ min: 1, max: 20 });
/** The quota and pace (units refilled or drained) of two to four plans; the pace is mostly the same. */
const severalPlans: fc.Arbitrary<[number, number][]> = fc
  .tuple(
    fc.array(fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 40 })), { minLength: 2, maxLength: 4 }),
    fc.oneof(
      { weight: 2, arbitrary: pace.map((same) => [same, same, same, same]) },
      { weight: 1, arbitrary: fc.array(pace, { minLength: 4, maxLength: 4 }) },
    ),
  )
  .map(([quotas, paces]) => quotas.map((quota, i): [number, number] => [quota, paces[i] as number]));

// Plans share one count per key.
for (const { name, plan } of [...usual, ...others]) {
  it(`several plans on one key never admit more than the largest plan alone: ${name}`, async (world) => {
    await fc.assert(
      fc.asyncProperty(severalPlans, lives, (numbers, phases) =>
        new Turns(
          world,
          numbers.map((of) => plan(...of)),
        ).play(phases),
      ),
      world.runs(120),
    );
  });
}

interface Charge {
  readonly limit: Limit;
  readonly decision: Decision;
  /** The same request on the key that only the largest plan uses. */
  readonly alone: Decision;
  units: bigint;
  settled: boolean;
}

/** Plays phases on one key, and repeats each admitted request on a second key under the largest plan alone. */
class Turns {
  readonly #world: World;
  readonly #limits: readonly Limit[];
  readonly #largest: Limit;
  readonly #key: string;
  readonly #charges: Charge[] = [];
  #asked = 0;
  #latestMs = startMs;
  readonly #meanwhile = { owing: false, refunded: false };
  /** Whether a refund gave back more than it would have under the largest plan alone. */
  #gaveMore = false;

  constructor(world: World, plans: readonly Limit["policy"][]) {
    this.#world = world;
    this.#key = world.fresh();
    this.#limits = plans.map((policy) => createLimit("plans", policy));
    this.#largest = createLimit("alone", largestOf(plans));
    world.nowMs = startMs;
  }

  async play(phases: readonly Phase[]): Promise<void> {
    const { spanMs } = this.#largest.policy;
    for (const phase of phases) {
      if (this.#asked > 150) return;
      if (phase.act === "pause") this.#world.nowMs += Math.round(phase.share * spanMs);
      else if (phase.act === "step back") await this.#stepBack(phase.byMs);
      else if (phase.act === "settle") await this.#settle(phase.back, phase.factor);
      else await this.#ask(phase, this.#limits[phase.plan % this.#limits.length] as Limit, spanMs);
    }
  }

  /** Steps back by less than any plan's span, so every plan treats it as a small step. */
  async #stepBack(byMs: number): Promise<void> {
    const { store } = this.#world;
    // If the largest plan's state has ended, the store may have dropped it: the step back must not revive it.
    if ((await store.peek(this.#largest, this.#key)).resetAfterMs === 0) await store.reset(this.#largest, this.#key);
    this.#latestMs = Math.max(this.#latestMs, this.#world.nowMs);
    const spanMs = Math.min(...this.#limits.map(({ policy }) => policy.spanMs));
    this.#world.nowMs = Math.max(this.#world.nowMs - byMs, this.#latestMs - spanMs + 1);
  }

  async #ask(phase: Phase, limit: Limit, spanMs: number): Promise<void> {
    if (phase.act === "one") {
      await this.#consume(limit, 1 + Math.floor(phase.share * (limit.policy.quota - 1)));
    } else if (phase.act === "take all") {
      const { remaining } = await this.#world.store.peek(limit, this.#key);
      for (const cost of [Math.ceil(remaining / 2), Math.floor(remaining / 2)]) if (cost > 0) await this.#consume(limit, cost);
      while (await this.#consume(limit, 1));
    } else if (phase.act === "wait") {
      const { resetAfterMs, retryAfterMs } = await this.#world.store.peek(limit, this.#key);
      this.#world.nowMs += Math.max((phase.reset ? resetAfterMs : retryAfterMs) + phase.offMs, 0);
    } else if (phase.act === "trickle") {
      const times = Math.min(Math.floor((phase.share * spanMs) / phase.stepMs), 40);
      for (let i = 0; i < times; i++) {
        await this.#consume(limit, 1);
        this.#world.nowMs += phase.stepMs;
      }
    }
  }

  async #consume(limit: Limit, cost: number): Promise<boolean> {
    this.#asked++;
    const { store } = this.#world;
    const decision = await store.consume(limit, this.#key, cost);
    if (!decision.allowed) return false;
    const alone = await this.#at(decision.atMs, () => store.consume(this.#largest, this.#key, cost));
    const charge = { limit, decision, alone, units: BigInt(cost), settled: false };
    this.#charges.push(charge);
    this.#check(charge);
    return true;
  }

  /** Runs at the time that the state counts from: a logged rejection may have moved it ahead of the clock. */
  async #at<T>(atMs: number, ask: () => T): Promise<Awaited<T>> {
    const { nowMs } = this.#world;
    this.#world.nowMs = atMs;
    const answer = await ask();
    this.#world.nowMs = nowMs;
    return answer;
  }

  /**
   * The largest plan alone would have admitted the same requests. There are two exceptions: an interval bucket may refill at other times,
   * and a slower bucket refunds more because less has been refilled. So for all buckets, no stretch of time has more than the largest
   * plan can ever admit.
   */
  #check(newest: Charge): void {
    const { policy } = this.#largest;
    const isBucket = !policy.algorithm.includes("window");
    const interval = policy.algorithm === "token-bucket" && policy.style === "interval";
    if (!interval && !(this.#gaveMore && isBucket))
      assert.equal(newest.alone.allowed, true, `the largest plan alone rejects request ${this.#charges.length}`);
    if (!isBucket) return;
    const toMs = newest.decision.atMs;
    let units = 0n;
    let fromMs = toMs;
    for (let i = this.#charges.length - 1; i >= 0; i--) {
      const charge = this.#charges[i] as Charge;
      // Check only up to the last step back of the clock.
      if (charge.decision.atMs > fromMs) return;
      fromMs = charge.decision.atMs;
      units += charge.units;
      const stretchMs = toMs - fromMs;
      const most = mostIn(policy, fromMs, stretchMs, this.#meanwhile);
      assert.ok(units <= most, `${units} units within ${stretchMs} ms, and ${most} at most`);
    }
  }

  async #settle(back: number, factor: number): Promise<void> {
    const charge = this.#charges.filter(({ settled }) => !settled).at(-1 - back);
    if (charge === undefined) return;
    charge.settled = true;
    const cost = Math.round(charge.decision.cost * factor);
    const { store } = this.#world;
    const { atMs } = await store.peek(charge.limit, this.#key);
    const change = await store.settle(charge.limit, this.#key, asCharge(charge.decision), cost);
    const alone = await this.#at(atMs, () => store.settle(this.#largest, this.#key, asCharge(charge.alone), cost));
    this.#gaveMore ||= change < alone;
    charge.units += BigInt(Math.floor(change));
    this.#meanwhile.owing ||= change > 0;
    this.#meanwhile.refunded ||= change < 0;
  }
}

it("numbers stay whole and waits correct however often plans change", async (world) => {
  const step = fc.record({ byMs: fc.oneof(fc.nat(300), fc.nat(3000)), plan: fc.nat(2), cost: fc.integer({ min: 1, max: 12 }) });
  const script = fc.record({
    kind: fc.constantFrom(...variants),
    plans: fc.array(plans, { minLength: 3, maxLength: 3 }),
    steps: fc.array(step, { minLength: 1, maxLength: 10 }),
  });
  await fc.assert(
    fc.asyncProperty(script, async ({ kind, plans: numbers, steps }) => {
      const name = world.fresh("plans");
      const limits = numbers.map((plan) => createLimit(name, planOf(kind, plan)));
      const live = async (key: string, until: number): Promise<[Limit, Decision]> => {
        world.nowMs = startMs;
        let last: [Limit, Decision] | undefined;
        for (const { byMs, plan, cost } of steps.slice(0, until)) {
          world.nowMs += byMs;
          const limit = limits[plan] as Limit;
          last = [limit, await world.store.consume(limit, key, cost)];
        }
        return last as [Limit, Decision];
      };
      for (let until = 1; until <= steps.length; until++) {
        const key = world.fresh();
        const [limit, decision] = await live(key, until);
        checkNumbers(decision);
        if (decision.cost > decision.limit) continue;
        const nowMs = world.nowMs;
        world.nowMs = nowMs + decision.retryAfterMs;
        assert.equal((await world.store.consume(limit, key, decision.cost)).allowed, true, `after ${decision.retryAfterMs} ms`);
        if (decision.retryAfterMs === 0) continue;
        const early = world.fresh();
        await live(early, until);
        world.nowMs = nowMs + decision.retryAfterMs - 1;
        assert.equal((await world.store.consume(limit, early, decision.cost)).allowed, false, `one before ${decision.retryAfterMs} ms`);
      }
    }),
    world.runs(150),
  );
});
