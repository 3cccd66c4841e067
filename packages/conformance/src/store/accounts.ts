import * as assert from "node:assert/strict";
import { consumeAll, createLimiter, type Decision, type Limiter, type Policy } from "@floodgate/core";
import { algorithmOf } from "@floodgate/core/store";
import * as fc from "fast-check";
import { isWindow, variants } from "./algorithms.js";
import { patient, type Suite, type World } from "./world.js";

/** Makes the limiters under test. */
export type LimiterMaker = Pick<World, "limiter" | "fresh" | "store">;

/** No charge is refunded twice, or for more than it took. */
export function accountCases(suite: Suite): void {
  suite.it(
    "every charge is refunded or settled at most once, in any order of requests, resets, reloads, forged copies and receipts",
    (world) => accountsHold(world, world.runs(150).numRuns),
  );
}

export const accountSecret = "a secret of the conformance suite's own";

/** One policy of each kind except the queue, which refunds nothing. */
const policiesOf = (quota: number): readonly Policy[] =>
  variants.map(({ of }) => of(quota, 1, "1h")).filter((policy) => algorithmOf(policy).delays !== true);

type Act =
  | { readonly act: "consume"; readonly of: number; readonly key: number; readonly cost: number }
  | { readonly act: "consumeAll"; readonly key: number; readonly cost: number }
  | { readonly act: "settle"; readonly which: number; readonly cost: number; readonly by: "decision" | "receipt"; readonly edited: boolean }
  | { readonly act: "forge"; readonly which: number; readonly how: number }
  | { readonly act: "reset"; readonly of: number; readonly key: number }
  | { readonly act: "reload" };

const two = fc.nat(1);
const which = fc.nat(7);
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ act: fc.constant("consume" as const), of: two, key: two, cost: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant("consumeAll" as const), key: two, cost: fc.integer({ min: 1, max: 4 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constant("settle" as const),
      which,
      cost: fc.oneof(fc.constant(0), fc.nat(6)),
      by: fc.constantFrom("decision", "decision", "receipt" as const),
      edited: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ act: fc.constant("forge" as const), which, how: fc.nat(99) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("reset" as const), of: two, key: two }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("reload" as const) }) },
);

/** Checks the property on limiters from `maker`. The clock stands still, so nothing expires and every number is exact. */
async function accountsHold(maker: LimiterMaker, numRuns = 150): Promise<void> {
  const quotas = fc.integer({ min: 4, max: 12 });
  const pair = fc.tuple(fc.nat(5), fc.nat(5));
  await fc.assert(
    fc.asyncProperty(fc.tuple(quotas, quotas), pair, fc.array(act, { minLength: 3, maxLength: 25, size: "max" }), (quota, kind, acts) =>
      new Accounts(
        maker,
        [0, 1].map((i) => policiesOf(quota[i] as number)[kind[i] as number] as Policy),
      ).play(acts),
    ),
    { numRuns },
  );
}

interface Account {
  readonly of: number;
  readonly key: number;
  readonly paid: number;
  readonly decision: Decision;
  /** The number of the state that was charged: see `#lives`. */
  readonly life: number;
  settled: boolean;
  receipt?: string;
}

/** Tracks the usage of two keys under two limiters, and compares it with the store's. */
class Accounts {
  readonly #maker: LimiterMaker;
  readonly #policies: readonly Policy[];
  readonly #names: readonly string[];
  readonly #keys: readonly string[];
  #limiters: readonly Limiter[];
  /** Units in use, by limiter and key. */
  readonly #used = [
    [0, 0],
    [0, 0],
  ] as [[number, number], [number, number]];
  /** Resets so far, by limiter and key. Each reset begins a new state, so the count identifies the state. */
  readonly #lives = [
    [0, 0],
    [0, 0],
  ] as [[number, number], [number, number]];
  readonly #accounts: Account[] = [];
  /** Decisions that charged nothing. */
  readonly #free: Decision[] = [];

  constructor(maker: LimiterMaker, policies: readonly Policy[]) {
    this.#maker = maker;
    this.#policies = policies;
    this.#names = policies.map(() => maker.fresh("limit"));
    this.#keys = [maker.fresh(), maker.fresh()];
    this.#limiters = this.#made();
  }

  #made(): Limiter[] {
    return this.#policies.map((policy, i) => this.#maker.limiter(policy, this.#names[i], accountSecret));
  }

  async play(acts: readonly Act[]): Promise<void> {
    for (const [index, act] of acts.entries()) {
      await this.#play(act);
      for (const of of [0, 1]) {
        for (const key of [0, 1]) {
          const look = await (this.#limiters[of] as Limiter).peek(this.#keys[key] as string);
          this.#free.push(look);
          assert.equal(look.remaining, Math.max(0, this.#left(of, key)), `after act ${index}: ${JSON.stringify(act)}`);
        }
      }
    }
  }

  #left(of: number, key: number): number {
    return (this.#policies[of] as Policy).quota - ((this.#used[of] as number[])[key] as number);
  }

  #use(of: number, key: number, units: number): void {
    (this.#used[of] as number[])[key] = ((this.#used[of] as number[])[key] as number) + units;
  }

  async #play(act: Act): Promise<void> {
    switch (act.act) {
      case "consume": {
        const decision = await (this.#limiters[act.of] as Limiter).consume(this.#keys[act.key] as string, { cost: act.cost });
        assert.equal(decision.allowed, act.cost <= this.#left(act.of, act.key));
        this.#keep(act.of, act.key, decision, decision.allowed);
        return;
      }
      case "consumeAll": {
        const checks = this.#limiters.map((limiter) => ({ limiter, key: this.#keys[act.key] as string, cost: act.cost }));
        const { allowed, all } = await consumeAll(checks);
        assert.equal(
          allowed,
          [0, 1].every((of) => act.cost <= this.#left(of, act.key)),
        );
        for (const [of, decision] of all.entries()) this.#keep(of, act.key, decision, allowed);
        return;
      }
      case "settle":
        return await this.#settle(act);
      case "forge":
        return await this.#forge(act);
      case "reset":
        await (this.#limiters[act.of] as Limiter).reset(this.#keys[act.key] as string);
        (this.#used[act.of] as number[])[act.key] = 0;
        (this.#lives[act.of] as number[])[act.key] = ((this.#lives[act.of] as number[])[act.key] as number) + 1;
        return;
      case "reload":
        this.#limiters = this.#made();
    }
  }

  #keep(of: number, key: number, decision: Decision, paid: boolean): void {
    if (!paid) {
      this.#free.push(decision);
      return;
    }
    this.#use(of, key, decision.cost);
    const life = (this.#lives[of] as number[])[key] as number;
    this.#accounts.push({ of, key, paid: decision.cost, decision, life, settled: false });
  }

  async #settle({ which, cost, by, edited }: Act & { act: "settle" }): Promise<void> {
    const account = this.#accounts.at(-1 - which);
    if (account === undefined) return;
    const { of, key, paid, decision } = account;
    const limiter = this.#limiters[of] as Limiter;
    if (edited) Object.assign(decision, { cost: 99, atMs: decision.atMs + 1, name: "edited", allowed: !decision.allowed, degraded: true });
    let change = 0;
    if (!account.settled) {
      const counts = account.life === (this.#lives[of] as number[])[key];
      change = counts || (cost > paid && !isWindow(this.#policies[of] as Policy)) ? cost - paid : 0;
    }
    if (by === "receipt" && account.receipt === undefined) account.receipt = limiter.receipt(decision);
    const charge = by === "receipt" ? (account.receipt as string) : decision;
    account.settled = true;
    this.#use(of, key, change);
    if (cost === 0) assert.equal(await limiter.refund(this.#keys[key] as string, charge), 0 - change);
    else assert.equal((await limiter.settle(this.#keys[key] as string, charge, cost)) + 0, change + 0);
  }

  /** A forged charge is rejected or changes nothing. */
  async #forge({ which, how }: Act & { act: "forge" }): Promise<void> {
    const account = this.#accounts.at(-1 - which);
    const free = this.#free.at(-1 - which);
    if (how % 8 === 0 && free !== undefined) {
      const limiter = this.#limiters.find(({ name }) => name === free.name) as Limiter;
      assert.equal(await limiter.refund(this.#keys[how % 2] as string, free), 0);
      await refused("FLOODGATE_FOREIGN_CHARGE", () => limiter.refund(this.#keys[0] as string, { ...free, allowed: true, cost: 2 }));
    }
    if (account === undefined) return;
    const { of, key, decision } = account;
    const [limiter, other] = [this.#limiters[of] as Limiter, this.#limiters[1 - of] as Limiter];
    const [own, foreign] = [this.#keys[key] as string, this.#keys[1 - key] as string];
    const foreigners: (() => unknown)[] = [
      () => limiter.refund(own, { ...decision }),
      () => limiter.settle(own, JSON.parse(JSON.stringify(decision)), 0),
      () => limiter.refund(foreign, decision),
      () => other.refund(own, decision),
      () => createLimiter({ name: limiter.name, policy: limiter.policy, store: patient(this.#maker.store) }).refund(own, decision),
      () => limiter.receipt({ ...decision }),
    ];
    await refused("FLOODGATE_FOREIGN_CHARGE", foreigners[how % foreigners.length] as () => unknown);
    account.receipt ??= limiter.receipt(decision);
    const receipt = account.receipt;
    const at = how % receipt.length;
    const altered = `${receipt.slice(0, at)}${receipt[at] === "0" ? "1" : "0"}${receipt.slice(at + 1)}`;
    const unsigned = createLimiter({ name: limiter.name, policy: limiter.policy, store: limiter.store });
    const invalid: (() => unknown)[] = [
      () => limiter.refund(own, altered),
      () => limiter.settle(own, `${receipt}0`, 0),
      () => limiter.refund(own, ""),
    ];
    // "fr1.n." marks the receipt of a settled charge. It changes nothing, and any key accepts it.
    if (!receipt.startsWith("fr1.n."))
      invalid.push(
        () => limiter.refund(foreign, receipt),
        () => other.refund(own, receipt),
      );
    invalid.push(() => unsigned.refund(own, receipt));
    await refused("FLOODGATE_INVALID_RECEIPT", invalid[how % invalid.length] as () => unknown);
  }
}

async function refused(code: string, act: () => unknown): Promise<void> {
  await assert.rejects(async () => await act(), { code });
}
