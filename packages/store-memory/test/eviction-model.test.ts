import {
  type Decision,
  type FloodgateEvent,
  fixedWindow,
  gcra,
  leakyBucket,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { asCharge, type Check, createLimit, type Limit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { type MemoryStore, memoryStore } from "../src/index.js";

const startMs = 1_789_948_800_000;
/** Shares closer than this may fall into one class. */
const classWidth = 1 / 255;
/** A key that can pass is listed by its use of up to a quarter of its limit ago. */
const slack = 1 / 4;
/** How many evictions a full store may make before it has looked at every key again: 3 keys for each new key, one of which may be newer. */
const maxUnseen = (maxKeys: number): number => Math.ceil(maxKeys / 2) + 4;

/** The plans of one name, smallest first. */
type Rule = readonly [Limit, ...Limit[]];

const limits = fc.constantFrom(1, 2, 3, 100);
const windows = fc.constantFrom("2s", "1m", "1d") as fc.Arbitrary<"2s" | "1m" | "1d">;
const plans = fc
  .tuple(limits, fc.option(limits))
  .map(([one, other]) => (other === null || other === one ? [one] : [one, other].sort((a, b) => a - b)));

const rules: fc.Arbitrary<Rule[]> = fc
  .array(fc.record({ window: windows, plans, kind: fc.nat(5) }), { minLength: 1, maxLength: 4 })
  .map((list) =>
    list.map(({ window, plans: quotas, kind }, i) => {
      const policies = [
        (limit: number) => fixedWindow({ limit, window }),
        (limit: number) => slidingWindowLog({ limit, window }),
        (limit: number) => slidingWindowCounter({ limit, window }),
        (limit: number) => tokenBucket({ capacity: limit, refill: limit, every: window }),
        (limit: number) => gcra({ limit, window }),
        (limit: number) => leakyBucket({ capacity: limit, leak: limit, every: window }),
      ];
      // Only window plans see the same usage in one state.
      const policyOf = policies[kind] as (typeof policies)[0];
      return (kind < 2 ? quotas : quotas.slice(0, 1)).map((quota) => createLimit(`rule ${i}`, policyOf(quota))) as unknown as Rule;
    }),
  );

const part = fc.record({
  rule: fc.nat(3),
  plan: fc.nat(1),
  key: fc.nat(30),
  cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 100 })),
});
const steps = fc.array(
  fc.record({
    byMs: fc.oneof(
      { weight: 4, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.constantFrom(1, 500, 2_000, 20_000, 60_000, 86_400_000) },
    ),
    what: fc.constantFrom("consume", "consume", "consume", "spray", "all", "all", "owe", "reset"),
    parts: fc.array(part, { minLength: 1, maxLength: 4 }),
  }),
  { minLength: 20, maxLength: 60, size: "max" },
);

type Part = { rule: number; plan: number; key: number; cost: number };

/** A key, with the shares of its limit that it had used, each with the number of evictions before. */
interface Entry {
  readonly rule: Rule;
  readonly key: string;
  readonly shares: { readonly evictions: number; readonly share: number }[];
  /** The number of evictions before its state had ended. */
  endedAt: number | undefined;
}

/** A key's data that decides the order of eviction. */
interface Seen extends Entry {
  /** The share of its limit in use now. */
  readonly share: number;
  /** The largest share that the store may still believe in. */
  readonly listedShare: number;
  readonly resetAtMs: number;
}

/** A bounded store and a twin that is never full. When the bounded one evicts a key, the key is reset in the twin. */
class Model {
  nowMs = startMs;
  readonly #maxKeys: number;
  readonly #events: FloodgateEvent[] = [];
  readonly store: MemoryStore;
  readonly twin: MemoryStore = memoryStore({ clock: () => this.nowMs });
  readonly #rules: readonly Rule[];
  readonly #entries = new Map<string, Entry>();
  #sprayed = 0;

  constructor(maxKeys: number, list: readonly Rule[]) {
    this.#maxKeys = maxKeys;
    this.#rules = list;
    this.store = memoryStore({ maxKeys, clock: () => this.nowMs, onEvent: (event) => this.#events.push(event) });
    for (const limit of list.flat()) for (const store of [this.store, this.twin]) store.peek(limit, "");
  }

  play(what: string, parts: readonly Part[]): void {
    const checks = this.#checksOf(parts);
    if (what !== "spray") this.#step(what, checks);
    else for (let i = 0; i < 10; i++) for (const check of checks) this.#step("consume", [{ ...check, key: `sprayed ${this.#sprayed++}` }]);
  }

  #step(what: string, checks: readonly Check[]): void {
    const [first] = checks as [Check];
    const own = new Set((what === "all" ? checks : [first]).map((check) => idOf(check.limit.name, check.key)));
    if (what === "all") {
      const decisions = this.store.consumeAll(checks);
      expect(decisions).toEqual(this.twin.consumeAll(checks));
    } else if (what === "reset") for (const store of [this.store, this.twin]) store.reset(first.limit, first.key);
    else if (what === "owe") expect(owe(this.store, first)).toEqual(owe(this.twin, first));
    else expect(consume(this.store, first)).toEqual(consume(this.twin, first));

    const evicted = this.#events.splice(0).flatMap((event) => (event.type === "evicted" ? [idOf(event.name, event.key)] : []));
    if (evicted.length > 0) this.#judge(evicted, own);
    for (const id of own) {
      const check = checks.find(({ limit, key }) => idOf(limit.name, key) === id) as Check;
      const rule = this.#rules.find(([limit]) => limit.name === check.limit.name) as Rule;
      const entry = this.#entries.get(id);
      const isAlive = this.twin.peek(rule[rule.length - 1] as Limit, check.key).resetAfterMs > 0;
      if (!isAlive || evicted.includes(id)) {
        this.#entries.delete(id);
        continue;
      }
      const noted = entry ?? { rule, key: check.key, shares: [], endedAt: undefined };
      noted.endedAt = undefined;
      this.#entries.set(id, noted);
      this.#note(noted);
    }
  }

  /** Time passes. */
  pass(ms: number): void {
    if (ms === 0) return;
    this.nowMs += ms;
    for (const entry of this.#entries.values()) this.#note(entry);
  }

  /** Checks each evicted key in order. */
  #judge(evicted: readonly string[], own: ReadonlySet<string>): void {
    // The others' states are as they were before the step.
    const others = [...this.#entries].filter(([id]) => !own.has(id)).map(([, entry]) => this.#see(entry));
    for (const id of evicted) {
      const index = others.findIndex((entry) => idOf(entry.rule[0].name, entry.key) === id);
      if (index < 0) {
        expect(own.has(id)).toBe(true);
        expect(own.size).toBeGreaterThan(this.#maxKeys);
      } else {
        const [gone] = others.splice(index, 1) as [Seen];
        expect(gone.resetAtMs).toBeGreaterThan(this.nowMs);
        mayGo(
          gone,
          others.filter(({ resetAtMs }) => resetAtMs > this.nowMs),
        );
      }
      const [name = "", key = ""] = id.split("\n");
      const rule = this.#rules.find(([limit]) => limit.name === name) as Rule;
      this.twin.reset(rule[0], key);
      this.#entries.delete(id);
    }
    expect(this.store.size).toBeLessThanOrEqual(this.#maxKeys);
    // Ended keys that are still there have ended not long ago.
    const entries = [...this.#entries.values()];
    const recently = entries.filter(({ endedAt }) => endedAt !== undefined && this.store.evictions - endedAt <= maxUnseen(this.#maxKeys));
    const live = new Set([...this.#entries].filter(([, { endedAt }]) => endedAt === undefined).map(([id]) => id));
    for (const id of own) if (!evicted.includes(id)) live.add(id);
    expect(this.store.size - live.size).toBeLessThanOrEqual(recently.length);
  }

  #note(entry: Entry): void {
    const { share, resetAtMs } = this.#see(entry);
    const { evictions } = this.store;
    entry.shares.push({ evictions, share });
    if (resetAtMs <= this.nowMs) entry.endedAt ??= evictions;
  }

  #see(entry: Entry): Seen {
    const { rule, key, shares } = entry;
    const looks = rule.map((limit) => this.twin.peek(limit, key));
    const share = shareOf(looks[0] as Decision);
    const first = shares.findIndex(({ evictions }) => this.store.evictions - evictions <= maxUnseen(this.#maxKeys));
    const believed = shares.slice(Math.max((first < 0 ? shares.length : first) - 1, 0)).map((seen) => seen.share);
    const resetAtMs = this.nowMs + Math.max(...looks.map(({ resetAfterMs }) => resetAfterMs));
    return { ...entry, share, listedShare: Math.max(share, ...believed), resetAtMs };
  }

  /** Checks with different pairs of rule and key. */
  #checksOf(parts: readonly Part[]): Check[] {
    const checks = parts.map(({ rule: ruleNumber, plan, key, cost }) => {
      const rule = this.#rules[ruleNumber % this.#rules.length] as Rule;
      const limit = rule[plan % rule.length] as Limit;
      return { limit, key: `key ${key}`, cost: 1 + (cost % limit.policy.quota) };
    });
    return checks.filter((check, i) => checks.findIndex(({ limit, key }) => limit.name === check.limit.name && key === check.key) === i);
  }
}

/** Asserts that no other key had to be evicted before this one. */
function mayGo(gone: Seen, others: readonly Seen[]): void {
  const least = Math.min(...others.map((other) => other.listedShare));
  expect(gone.share).toBeLessThanOrEqual(least + slack + 2 * classWidth);
  if (gone.share < 1) return;
  expect(least).toBeGreaterThanOrEqual(1);
  const peers = others.filter((other) => other.rule === gone.rule);
  expect(gone.resetAtMs).toBeLessThanOrEqual(Math.min(...peers.map((other) => other.resetAtMs)));
  // No rule loses a blocked key to a rule that has more of them.
  for (const rule of new Set(others.map((other) => other.rule))) {
    expect(others.filter((other) => other.rule === rule).length).toBeLessThanOrEqual(peers.length + 1);
  }
}

function idOf(name: string, key: string): string {
  return `${name}\n${key}`;
}

function shareOf({ remaining, limit }: Decision): number {
  return 1 - remaining / limit;
}

function consume(store: MemoryStore, { limit, key, cost }: Check): Decision {
  return store.consume(limit, key, cost);
}

/** Settles a charge above the limit, into debt. */
function owe(store: MemoryStore, { limit, key, cost }: Check): number {
  const decision = store.consume(limit, key, 1);
  return decision.allowed ? store.settle(limit, key, asCharge(decision), limit.policy.quota + cost) : 0;
}

describe("a full memory store, compared with a sorting model,", () => {
  it("evicts keys in the documented order, and decides as if it were not full", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), rules, steps, (maxKeys, list, played) => {
        const model = new Model(maxKeys, list);
        for (const { byMs, what, parts } of played) {
          model.pass(byMs);
          model.play(what, parts);
        }
      }),
      { ...runs(40), endOnFailure: true },
    );
  });
});
