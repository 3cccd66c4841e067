import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { ignoresAllowed, RateLimit } from "../../src/adapter.js";
import { consumeAll, createLimiter, type FloodgateEvent, fixedWindow, leakyBucket, observe } from "../../src/index.js";
import { inventory, tellAll } from "../../src/rules.js";
import { FaultyStore } from "../faulty-store.js";
import { reader } from "../reader.js";

const policy = fixedWindow({ limit: 3, window: "1m" });
const stops: (() => void)[] = [];

function observed(): FloodgateEvent[] {
  const events: FloodgateEvent[] = [];
  stops.push(observe((event) => event.type !== "request" && events.push(event)));
  return events;
}

const types = (events: readonly FloodgateEvent[]) => events.map(({ type }) => type);

// The clock stands still, so that no window ends within a test.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => {
  vi.useRealTimers();
  for (const stop of stops.splice(0)) stop();
});

describe("observe", () => {
  it("hears of limiters that were made before and later: decisions, refunds and settlements", () => {
    const store = simpleStore();
    const before = createLimiter({ name: "before", policy, store });
    const events = observed();
    const later = createLimiter({ name: "later", policy, store });
    before.settle("k", before.consume("k"), 3);
    later.refund("k", later.consume("k"));
    before.consume("k");
    consumeAll([
      { limiter: before, key: "other" },
      { limiter: later, key: "other" },
    ]);
    const named = events.map((event) => [event.type, "name" in event && event.name]);
    expect(named).toEqual([
      ["allowed", "before"],
      ["settled", "before"],
      ["allowed", "later"],
      ["refunded", "later"],
      ["limited", "before"],
      ["allowed", "before"],
      ["allowed", "later"],
    ]);
    expect(events[0]).toMatchObject({ shadow: false, charged: 1, storeMs: expect.any(Number) });
  });

  it("hears a breaker's changes once, however many limiters of the store listen", async () => {
    const events = observed();
    const store = new FaultyStore(simpleStore());
    store.fault = "rejects";
    const own: FloodgateEvent[] = [];
    const limiters = ["a", "b"].map((name) =>
      createLimiter({ name, policy, store, onEvent: (event) => void (event.type !== "request" && own.push(event)) }),
    );
    for (let i = 0; i < 5; i++) await limiters[i % 2]?.consume("k");
    expect(types(events).filter((type) => type === "breaker")).toEqual(["breaker"]);
    expect(types(own).filter((type) => type === "breaker")).toHaveLength(2);
    expect(types(events).filter((type) => type === "store-error")).toHaveLength(5);
  });

  it("hears each event once, even if it listens twice, until both have stopped", () => {
    const events: FloodgateEvent[] = [];
    const listener = (event: FloodgateEvent) => void (event.type !== "request" && events.push(event));
    const [stop, stopAgain] = [observe(listener), observe(listener)];
    const limiter = createLimiter({ name: "api", policy, store: simpleStore(), onEvent: listener });
    limiter.consume("k");
    expect(events).toHaveLength(1);
    stop();
    stop();
    limiter.consume("k");
    expect(events).toHaveLength(2);
    stopAgain();
    limiter.consume("k");
    expect(events).toHaveLength(3);
  });

  it("hears what a source of rules tells several middlewares, once", () => {
    const events = observed();
    const own: FloodgateEvent[] = [];
    const tell = (event: FloodgateEvent) => void own.push(event);
    tellAll([tell, tell, (event) => void own.push(event)], { type: "rules-reloaded", source: "limits.yaml", version: "2" });
    expect([events.length, own.length]).toEqual([1, 2]);
  });

  it("hears of requests whose clock stands at 0, as fake clocks do", () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    expect(performance.now()).toBe(0);
    const events = observed();
    const limit = new RateLimit("test", { policy }, [], reader, () => simpleStore());
    limit.decide({});
    limit.close();
    expect(types(events)).toEqual(["allowed"]);
  });

  it("hears what a listener that ignores allowed requests is not told", () => {
    const own: FloodgateEvent[] = [];
    const rules = [
      { name: "enforced", key: "everyone", policy },
      { name: "shadow", key: "everyone", policy: fixedWindow({ limit: 1, window: "1m" }), mode: "shadow" as const },
    ];
    const options = {
      rules,
      keys: { everyone: () => "all" },
      onEvent: ignoresAllowed((event) => void (event.type !== "request" && own.push(event))),
    };
    const limit = new RateLimit("test", options, [], reader, () => simpleStore());
    limit.decide({});
    expect(own).toEqual([]);
    limit.decide({});
    // The request passes, but a shadow limit does not allow it: all events of the request are told.
    expect(types(own)).toEqual(["allowed", "shadow-limited"]);
    const events = observed();
    limit.decide({});
    expect(types(events)).toEqual(["allowed", "shadow-limited"]);
    limit.decide({});
    expect(types(own).slice(-2)).toEqual(["limited", "shadow-limited"]);
    limit.close();
  });

  it("a request of several limiters is heard by the listener of the limiter that decided it", () => {
    const someLimits = fc.array(
      fc.record({
        listens: fc.boolean(),
        cost: fc.integer({ min: 1, max: 3 }),
        policy: fc.oneof(
          fc.integer({ min: 1, max: 9 }).map((limit) => fixedWindow({ limit, window: "1m" })),
          fc.integer({ min: 1, max: 9 }).map((capacity) => leakyBucket({ capacity, leak: 1, every: "1s" })),
        ),
      }),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(someLimits, (limits) => {
        const store = simpleStore();
        const heard: unknown[] = [];
        const checks = limits.map(({ policy, cost, listens }, i) => {
          const onEvent = ({ type, name }: FloodgateEvent & { name?: string }) =>
            void (type === "request" && heard.push(`${i} hears ${name}`));
          return { limiter: createLimiter({ name: `${i}`, policy, store, ...(listens && { onEvent }) }), key: "k", cost };
        });
        for (let round = 0; round < 5; round++) {
          heard.length = 0;
          const { allowed, decision, all } = consumeAll(checks);
          const longest = Math.max(...all.map(({ delayMs }) => delayMs));
          const deciding = allowed && longest > decision.delayMs ? all.find(({ delayMs }) => delayMs === longest) : decision;
          const i = Number(deciding?.name);
          expect(heard).toEqual(limits[i]?.listens ? [`${i} hears ${i}`] : []);
        }
      }),
    );
  });

  it.each([undefined, null, "log", {}])("takes a function, which %s is not", (listener) => {
    expect(() => observe(listener as never)).toThrow(
      expect.objectContaining({ code: "FLOODGATE_INVALID_OPTION", message: expect.stringMatching(/^observe takes a function/) }),
    );
  });
});

describe("inventory", () => {
  it("shows limiters that are not closed, and each store once", () => {
    const store = simpleStore();
    const limiters = ["a", "b"].map((name) => createLimiter({ name, policy, store }));
    const mine = () => inventory().limits.filter(({ limiter }) => limiter.store === store);
    expect(mine()).toEqual(
      limiters.map((limiter) => ({
        name: limiter.name,
        limiter,
        shadow: false,
        policy,
        plans: undefined,
        rule: undefined,
        source: undefined,
      })),
    );
    expect(inventory().stores.filter((entry) => entry.store === store)).toEqual([
      { store, size: undefined, breaker: undefined, breakers: new Map() },
    ]);
    limiters[0]?.close();
    expect(mine().map(({ name }) => name)).toEqual(["b"]);
  });
});
