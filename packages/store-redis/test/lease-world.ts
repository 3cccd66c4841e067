import { createLimiter, type Decision, type Limiter, type Policy } from "@floodgate/core";
import { asCharge, passesAll } from "@floodgate/core/store";
import { memoryStore } from "@floodgate/store-memory";
import * as fc from "fast-check";
import { expect } from "vitest";
import { runs } from "../../../test/runs.js";
import { type AnyRedis, type RedisStore, redisStore } from "../src/index.js";

export const lifeMs = 100;

/** What happens to a key. `at` is the process. */
export type Action =
  | { readonly do: "consume" | "both" | "shadow"; readonly at: number; readonly times: number; readonly cost: number }
  | { readonly do: "refund"; readonly at: number; readonly which: number; readonly keep: number }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "give-back" | "reset" | "block" | "unblock" | "fault"; readonly at: number };

const at = fc.nat(2);

/** Mostly traffic. */
export const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof<fc.WeightedArbitrary<Action>[]>(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant("consume"),
        at,
        times: fc.integer({ min: 5, max: 30 }),
        cost: fc.integer({ min: 1, max: 3 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constantFrom("both", "shadow"),
        at,
        times: fc.integer({ min: 5, max: 20 }),
        cost: fc.constantFrom(1, 2),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("refund"), at, which: fc.nat(99), keep: fc.nat(2) }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constant("pass"), ms: fc.oneof(fc.nat(30), fc.nat(300)) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("give-back", "reset", "block", "unblock"), at }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("fault"), at }) },
  ),
  { minLength: 10, maxLength: 25 },
);

const burst: Action = { do: "consume", at: 0, times: 20, cost: 1 };

/** Random runs, and first one of a key that is hot for certain: random traffic may lease nothing. */
export function withHotKey(all: number): { numRuns: number; examples: [Action[]][] } {
  return { numRuns: 1 + runs(all).numRuns, examples: [[[burst, burst, burst]]] };
}

/** Units that were spent: when, and in which charge. */
interface Spent {
  readonly limiter: number;
  readonly process: number;
  readonly decision: Decision;
  readonly atMs: number;
  units: number;
}

const epochMs = 1_700_000_000_000;
const key = "hot";

/** Processes that share limits, under one injected clock, and everything that they allowed. */
export class LeaseWorld {
  nowMs: number = epochMs;
  readonly stores: readonly RedisStore[];
  /** For each process, its limiter under each policy. */
  readonly #limiters: readonly (readonly Limiter<"async">[])[];
  readonly #policies: readonly Policy[];
  #spent: Spent[] = [];
  /** When a process blocked the key, and which. */
  #blocked: { readonly atMs: number; readonly by: number } | undefined;
  /** Locally spent units, to make sure that leases were in use. */
  leased = 0;
  readonly #charges = new Set<string>();
  readonly #timeoutMs: number;

  constructor(clients: readonly AnyRedis[], prefix: string, policies: readonly Policy[], timeoutMs: number) {
    this.#policies = policies;
    this.#timeoutMs = timeoutMs;
    this.stores = clients.map((client) => redisStore(client, { prefix, lease: { lifeMs }, clock: () => this.nowMs }));
    this.#limiters = this.stores.map((store) =>
      policies.map((policy, i) => createLimiter({ name: `limit-${i}`, policy, store, timeoutMs, onStoreError: "deny" })),
    );
  }

  limiter(process: number, limiter = 0): Limiter<"async"> {
    return this.#limiters[process]?.[limiter] as Limiter<"async">;
  }

  /** @param serverUs reads the server's clock. */
  async act(action: Action, serverUs: () => Promise<number>): Promise<void> {
    switch (action.do) {
      case "pass":
        this.nowMs += action.ms;
        return;
      case "consume":
        for (let i = 0; i < action.times; i++) this.#note(action.at, 0, await this.limiter(action.at).consume(key, { cost: action.cost }));
        return;
      case "both":
      case "shadow":
        for (let i = 0; i < action.times; i++) await this.#consumeBoth(action.at, action.cost, action.do === "shadow");
        return;
      case "refund":
        return this.#refund(action.at, action.which, action.keep);
      case "give-back":
        return this.stores[action.at]?.releaseLeases();
      case "reset": {
        // No fetch may arrive between the reading of the time and the reset.
        await this.#arrive();
        const us = await serverUs();
        const done = await this.limiter(action.at)
          .reset(key)
          .catch(() => "failed");
        // What a charge to the old state admitted does not count any more, nor what is still spent of it.
        if (done !== "failed") this.#spent = this.#spent.filter(({ limiter }) => limiter !== 0);
        this.#resetUs = us;
        return;
      }
      case "block":
        await this.limiter(action.at)
          .block(key, "1h")
          .then(
            () => {
              this.#blocked = { atMs: this.nowMs, by: action.at };
            },
            () => undefined,
          );
        return;
      case "unblock":
        this.#blocked = undefined;
        await this.limiter(action.at)
          .unblock(key)
          .catch(() => undefined);
        return;
    }
  }

  #resetUs = 0;

  async #consumeBoth(process: number, cost: number, shadow: boolean): Promise<void> {
    const limiters = [this.limiter(process), this.limiter(process, 1)];
    const checks = limiters.map(({ limit }, i) => ({ limit, key, cost, shadow: shadow && i === 1 }));
    const deciding = Promise.resolve((this.stores[process] as RedisStore).consumeAll(checks, this.#timeoutMs));
    const all = await deciding.catch((): Decision[] => []);
    if (passesAll(checks, all)) for (const [i, decision] of all.entries()) this.#note(process, i, decision);
  }

  #note(process: number, limiter: number, decision: Decision): void {
    if (!decision.allowed) return;
    const { atMs, state = 0 } = asCharge(decision);
    const { nowMs } = this;
    expect(decision.degraded).toBe(false);
    expect(decision.remaining).toBeGreaterThanOrEqual(0);
    // Units are charged first, and spent within a life, in the window of the charge.
    if (nowMs < atMs || nowMs - atMs >= lifeMs) throw new Error(`Units of ${atMs} were spent at ${nowMs}.`);
    const policy = this.#policies[limiter] as Policy;
    if (policy.algorithm === "fixed-window" && Math.floor(nowMs / policy.windowMs) !== Math.floor(atMs / policy.windowMs)) {
      throw new Error(`Units of ${atMs} were spent at ${nowMs}, in the next window.`);
    }
    if (limiter === 0 && this.#blocked !== undefined) {
      const { by, atMs: blockedMs } = this.#blocked;
      if (by === process || nowMs >= blockedMs + lifeMs)
        throw new Error(`A block of ${blockedMs} by ${by} let ${process} pass at ${nowMs}.`);
    }
    // Only the units of a lease have one charge together.
    const charge = `${limiter} ${state}`;
    if (this.#charges.has(charge)) this.leased += decision.cost;
    this.#charges.add(charge);
    if (limiter === 0 && state < this.#resetUs) return;
    this.#spent.push({ limiter, process, decision, atMs, units: decision.cost });
  }

  /** What is in flight arrives before the answers to these questions. */
  async #arrive(): Promise<void> {
    for (const [limiter] of this.#limiters) await limiter?.keyState(key).catch(() => undefined);
  }

  async #refund(process: number, which: number, keep: number): Promise<void> {
    const own = this.#spent.filter((spent) => spent.process === process && spent.units === spent.decision.cost);
    const spent = own[which % Math.max(own.length, 1)];
    if (spent === undefined || keep >= spent.units) return;
    const change = await this.limiter(process, spent.limiter)
      .settle(key, spent.decision, keep)
      .catch(() => undefined);
    // After a fault, it may have been given back.
    const given = change === undefined ? spent.units - keep : -change;
    if (given > spent.units - keep) throw new Error(`A refund gave back ${given} of ${spent.units} units.`);
    // A bucket gives back parts of a unit too.
    spent.units -= Math.ceil(given);
  }

  /** Replays what was spent as requests that came one by one, when their units were charged. The policy must allow each of them. */
  check(): Limiter<"sync">[] {
    let nowMs = 0;
    const store = memoryStore({ clock: () => nowMs, maxKeys: 10 });
    return this.#policies.map((policy, i) => {
      const limiter = createLimiter({ name: `replay-${i}`, policy, store });
      const spent = this.#spent.filter(({ limiter, units }) => limiter === i && units > 0).sort((one, other) => one.atMs - other.atMs);
      for (const { atMs, units, process } of spent) {
        nowMs = atMs;
        const { allowed } = limiter.consume(key, { cost: units });
        if (!allowed) throw new Error(`${units} units of ${atMs} in process ${process} are more than ${JSON.stringify(policy)} allows.`);
      }
      nowMs = this.nowMs;
      return limiter;
    });
  }

  /** Lets all leases end by time alone, and then compares what Redis counts with what was spent. */
  async settleDown(): Promise<void> {
    await this.#arrive();
    this.nowMs += lifeMs;
    // The numbers of a blocked key are those of its block.
    await this.limiter(0).unblock(key);
    await expect
      .poll(
        async () => {
          const used = await Promise.all(this.#limiters[0]?.map(async (limiter) => (await limiter.keyState(key)).decision.used) ?? []);
          return used;
        },
        { timeout: 5000, interval: 20 },
      )
      .toEqual(this.check().map((limiter) => limiter.keyState(key).decision.used));
  }

  close(): void {
    for (const limiter of this.#limiters.flat()) limiter.close();
  }
}
