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
import { type MemoryStore, memoryStore } from "../src/index.js";

const startMs = 1_789_948_800_000;
/** Shares closer than this may fall into one class. */
const classWidth = 1 / 255;

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
    what: fc.constantFrom("consume", "consume", "consume", "all", "all", "owe", "reset"),
    parts: fc.array(part, { minLength: 1, maxLength: 4 }),
  }),
  { minLength: 20, maxLength: 120, size: "max" },
);

type Part = { rule: number; plan: number; key: number; cost: number };

/** A key, and the share of its limit that it had used when the store last judged it. */
interface Entry {
  readonly rule: Rule;
  readonly key: string;
  readonly lastShare: number;
}

/** A key's data that decides the order of eviction. */
interface Seen extends Entry {
  /** The share of its limit in use now. */
  readonly share: number;
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

  constructor(maxKeys: number, list: readonly Rule[]) {
    this.#maxKeys = maxKeys;
    this.#rules = list;
    this.store = memoryStore({ maxKeys, clock: () => this.nowMs, onEvent: (event) => this.#events.push(event) });
    for (const limit of list.flat()) for (const store of [this.store, this.twin]) store.peek(limit, "");
  }

  play(what: string, parts: readonly Part[]): void {
    const checks = this.#checksOf(parts);
    const [first] = checks as [Check];
    // The keys before the step, without the request's own.
    const own = new Set((what === "all" ? checks : [first]).map((check) => idOf(check.limit.name, check.key)));
    const others = [...this.#entries].filter(([id]) => !own.has(id)).map(([, entry]) => this.#see(entry));

    let isRejected = false;
    if (what === "all") {
      const decisions = this.store.consumeAll(checks);
      expect(decisions).toEqual(this.twin.consumeAll(checks));
      isRejected = decisions.some(({ allowed }) => !allowed);
    } else if (what === "reset") for (const store of [this.store, this.twin]) store.reset(first.limit, first.key);
    else if (what === "owe") expect(owe(this.store, first)).toEqual(owe(this.twin, first));
    else expect(consume(this.store, first)).toEqual(consume(this.twin, first));

    for (const id of own) {
      const check = checks.find(({ limit, key }) => idOf(limit.name, key) === id) as Check;
      const rule = this.#rules.find(([limit]) => limit.name === check.limit.name) as Rule;
      const look = this.twin.peek(rule[0], check.key);
      // A limit that allowed a request which another one rejected has not been charged, so the store does not judge its key again.
      const last = this.#entries.get(id)?.lastShare ?? 0;
      if (look.resetAfterMs === 0) this.#entries.delete(id);
      else this.#entries.set(id, { rule, key: check.key, lastShare: isRejected ? Math.max(shareOf(look), last) : shareOf(look) });
    }
    this.#judge(
      others.filter(({ resetAtMs }) => resetAtMs > this.nowMs),
      own,
    );
  }

  /** Checks each evicted key in order. */
  #judge(others: Seen[], own: ReadonlySet<string>): void {
    const evicted = this.#events.splice(0).flatMap((event) => (event.type === "evicted" ? [idOf(event.name, event.key)] : []));
    for (const id of evicted) {
      const index = others.findIndex((entry) => idOf(entry.rule[0].name, entry.key) === id);
      if (index < 0) {
        expect(own.has(id)).toBe(true);
        expect(own.size).toBeGreaterThan(this.#maxKeys);
      } else {
        const [gone] = others.splice(index, 1) as [Seen];
        mayGo(gone, others);
      }
      const entry = this.#entries.get(id) as Entry;
      this.twin.reset(entry.rule[0], entry.key);
      this.#entries.delete(id);
    }
    expect(this.store.size).toBeLessThanOrEqual(this.#maxKeys);
    // A live key may be evicted only if no ended key is left.
    if (evicted.length > 0) {
      const live = [...this.#entries.values()].filter((entry) => this.#see(entry).resetAtMs > this.nowMs).length;
      expect(live).toBe(Math.min(this.#maxKeys, this.store.size));
    }
  }

  #see(entry: Entry): Seen {
    const look = this.twin.peek(entry.rule[0], entry.key);
    return { ...entry, share: shareOf(look), resetAtMs: this.nowMs + look.resetAfterMs };
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
  const least = Math.min(...others.map((other) => other.lastShare));
  expect(gone.share).toBeLessThanOrEqual(least + classWidth);
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
      fc.property(fc.integer({ min: 1, max: 50 }), rules, steps, (maxKeys, list, played) => {
        const model = new Model(maxKeys, list);
        for (const { byMs, what, parts } of played) {
          model.nowMs += byMs;
          model.play(what, parts);
        }
      }),
      { numRuns: 150 },
    );
  });
});
