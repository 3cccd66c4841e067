import { describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import {
  concurrency,
  consumeAll,
  createLimiter,
  type Decision,
  FloodgateError,
  type FloodgateEvent,
  fixedWindow,
  type Limiter,
  leakyBucket,
  type Store,
  slidingWindowLog,
} from "../../src/index.js";
import { type Fault, FaultyStore } from "../faulty-store.js";
import {
  allowed,
  away,
  fallback,
  inner,
  inTime,
  limiter,
  pausedMs,
  policy,
  replaceStore,
  store,
  timeoutMs,
  used,
  useFallback,
} from "./fallback-world.js";

useFallback();

describe("during an outage, a fallback", () => {
  it("limits each process to its share, and marks decisions as degraded", async () => {
    const api = limiter(policy, 4);
    const decisions = await away(api, 5);
    expect(decisions.map((decision) => [decision.allowed, decision.limit, decision.remaining])).toEqual([
      [true, 3, 2],
      [true, 3, 1],
      [true, 3, 0],
      [false, 3, 0],
      [false, 3, 0],
    ]);
    expect(decisions[4]).toMatchObject({ degraded: true, name: "api", policy, cost: 1, retryAfterMs: expect.any(Number) });
  });

  it("uses the whole limit without a share", async () => {
    const api = createLimiter({ name: "api", policy, store, timeoutMs, onStoreError: fallback });
    expect(allowed(await away(api, 20))).toBe(12);
  });

  it("tells a request above the share to retry at the next probe, and one above the limit never", async () => {
    const api = limiter(policy, 4);
    await away(api, 5);
    store.fault = "rejects";
    const decision = await api.consume("other", { cost: 4 });
    expect(decision).toMatchObject({ allowed: false, limit: 3, remaining: 3 });
    expect(decision.retryAfterMs).toBeGreaterThan(0);
    expect(decision.retryAfterMs).toBeLessThanOrEqual(375);
    expect(await api.consume("other", { cost: 13 })).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY });
  });

  it("decides several limits in one step, and peeks without charging", async () => {
    const [a, b] = [limiter(policy, 4, "a"), limiter(fixedWindow({ limit: 4, window: "1h" }), 4, "b")];
    const both = [a, b].map((one) => ({ limiter: one, key: "k" }));
    store.fault = "rejects";
    expect((await consumeAll(both)).allowed).toBe(true);
    expect((await consumeAll(both)).all.map((decision) => [decision.allowed, decision.remaining, decision.degraded])).toEqual([
      [true, 2, true],
      [false, 0, true],
    ]);
    expect(await a.peek("k")).toMatchObject({ remaining: 2, degraded: true });
    expect(await a.peek("k")).toMatchObject({ remaining: 2, degraded: true });
  });

  it("supports queues", async () => {
    const api = limiter(leakyBucket({ capacity: 8, leak: 4, every: "1s" }), 4);
    expect((await away(api, 3)).map((decision) => [decision.allowed, decision.delayMs])).toEqual([
      [true, 0],
      [true, 950],
      [false, 0],
    ]);
  });

  it("refunds its own charges, once", async () => {
    const api = limiter();
    const [first] = await away(api, 2);
    expect([await api.refund("k", first as Decision), await api.refund("k", first as Decision)]).toEqual([1, 0]);
    expect(used(fallback, api)).toBe(1);
  });

  it("settles its own charges, once, under its share", async () => {
    const api = limiter(policy, 4);
    const [first, second] = await away(api, 2);
    expect([await api.settle("k", first as Decision, 4), await api.settle("k", first as Decision, 9)]).toEqual([3, 0]);
    expect((await away(api, 1))[0]).toMatchObject({ allowed: false, degraded: true });
    expect(await api.settle("k", second as Decision, 0)).toBe(-1);
    expect(inner.peek(api.limit, "k").remaining).toBe(12);
  });

  it("refunds its charges under several limits, even if a limiter has another fallback", async () => {
    const a = limiter(policy, 1, "a");
    const b = createLimiter({ name: "b", policy, store, timeoutMs, onStoreError: simpleStore() });
    store.fault = "rejects";
    const { all } = await consumeAll([a, b].map((one) => ({ limiter: one, key: "k", cost: 4 })));
    const [ofA, ofB] = all as [Decision, Decision];
    expect([await a.refund("k", ofA), await b.settle("k", ofB, 1)]).toEqual([4, -3]);
    expect([used(fallback, a), used(fallback, b)]).toEqual([0, 1]);
  });

  it("that fails too allows the request, and reports both errors", async () => {
    const events: FloodgateEvent[] = [];
    const broken = new Error("no memory");
    const failing: Store<"sync"> = {
      ...simpleStore(),
      consumeAll() {
        throw broken;
      },
    };
    const api = createLimiter({
      name: "api",
      policy,
      store,
      onStoreError: failing,
      onEvent: (event) => event.type !== "request" && events.push(event),
    });
    store.fault = "rejects";
    expect(await api.consume("k")).toMatchObject({ allowed: true, degraded: true });
    expect(events.map((event) => (event.type === "store-error" ? (event.error as Error).message : event.type))).toEqual([
      "The store is away",
      "no memory",
      "degraded",
    ]);
  });

  it("that fails to settle rejects the promise of the settlement", async () => {
    const failing: Store<"sync"> = {
      ...simpleStore(),
      settle() {
        throw new Error("no memory");
      },
    };
    const api = createLimiter({ name: "api", policy, store, onStoreError: failing });
    store.fault = "rejects";
    const refunding = api.refund("k", await api.consume("k"));
    await expect(refunding).rejects.toThrow("no memory");
  });

  it("renews the slot of work that runs longer than its hold", async () => {
    const api = limiter(concurrency({ limit: 1, hold: "30s" }));
    store.fault = "rejects";
    const running = api.run("k", () => new Promise((resolve) => void setTimeout(resolve, 301_000)));
    await vi.advanceTimersByTimeAsync(300_000);
    expect(fallback.peek(api.limit, "k").remaining).toBe(0);
    await vi.advanceTimersByTimeAsync(1000);
    expect(await running).toMatchObject({ allowed: true, decision: { degraded: true } });
    expect(fallback.peek(api.limit, "k").remaining).toBe(1);
  });

  it("limits a key that holds a foreign value in the store", async () => {
    const foreign: Store<"sync"> = {
      ...inner,
      consume() {
        throw new FloodgateError("FLOODGATE_FOREIGN_VALUE", "The key holds something else.");
      },
    };
    replaceStore(new FaultyStore(foreign));
    expect(allowed(await away(limiter(), 20))).toBe(12);
    const api = limiter();
    const decisions: Decision[] = [];
    for (let i = 0; i < 20; i++) decisions.push(await api.consume("foreign"));
    expect(allowed(decisions)).toBe(12);
  });
});

describe("when the store returns, a fallback", () => {
  it("hands over a key's usage before the key's first decision in the store", async () => {
    const api = limiter();
    await inTime(api.consume("k", { cost: 2 }));
    await away(api, 5);
    await vi.advanceTimersByTimeAsync(pausedMs);
    expect(await api.consume("k")).toMatchObject({ degraded: false, remaining: 4 });
    expect([used(inner, api), used(fallback, api)]).toEqual([8, 0]);
  });

  it("hands over once", async () => {
    const api = limiter();
    await away(api, 5);
    await vi.advanceTimersByTimeAsync(pausedMs);
    await api.consume("k");
    const { asked } = store;
    expect(await api.consume("k")).toMatchObject({ remaining: 5 });
    expect(store.asked).toBe(asked + 1);
  });

  it("hands over all usage of a key under concurrent requests, and each key separately", async () => {
    const api = limiter();
    await away(api, 5);
    await away(api, 1);
    await vi.advanceTimersByTimeAsync(pausedMs);
    // First the probe, then all others concurrently.
    await api.consume("try");
    const decisions = await Promise.all(Array.from({ length: 20 }, () => api.consume("k")));
    expect([allowed(decisions), used(inner, api), used(inner, api, "try")]).toEqual([6, 12, 1]);
    expect((await api.consume("new")).remaining).toBe(11);
  });

  it("keeps the usage that does not fit into the store", async () => {
    const api = limiter();
    await inTime(api.consume("k", { cost: 8 }));
    await away(api, 7);
    await vi.advanceTimersByTimeAsync(pausedMs);
    expect(await api.consume("k")).toMatchObject({ allowed: false, degraded: false, remaining: 0 });
    expect([used(inner, api), used(fallback, api)]).toEqual([12, 3]);
    expect(allowed(await away(api, 12))).toBe(9);
  });

  it("does not extend the life of usage that does not fit into the store", async () => {
    const api = limiter(slidingWindowLog({ limit: 12, window: "1h" }));
    await away(api, 7);
    await vi.advanceTimersByTimeAsync(pausedMs);
    inner.consume(api.limit, "k", 12);
    const windowMs = 3_600_000;
    for (let i = 0; i < 10; i++) {
      expect((await api.consume("k")).allowed).toBe(false);
      await vi.advanceTimersByTimeAsync(windowMs / 10);
    }
    expect(await api.consume("k")).toMatchObject({ degraded: false, remaining: 11 });
  });

  it("leaves no unhandled rejection if the store fails for several limits", async () => {
    const [a, b] = [limiter(policy, 1, "a"), limiter(policy, 1, "b")];
    const both = [a, b].map((one) => ({ limiter: one, key: "k" }));
    store.fault = "rejects";
    await consumeAll(both);
    store.consume = ({ name }) => {
      if (name === "a") return Promise.reject(new Error("later"));
      throw new Error("now");
    };
    expect((await consumeAll(both)).decision.degraded).toBe(true);
  });

  it.each<Fault>(["rejects", "throws", "never answers", "fails late"])(
    "loses nothing if the store %s during the hand-over",
    async (fault) => {
      const api = limiter();
      await away(api, 5);
      await vi.advanceTimersByTimeAsync(pausedMs);
      await api.consume("try");
      expect(allowed(await away(api, 12, fault))).toBe(7);
      store.arrive();
      await vi.advanceTimersByTimeAsync(pausedMs);
      expect(await inTime(api.consume("k"))).toMatchObject({ allowed: false, degraded: false });
      expect([used(inner, api), used(fallback, api)]).toEqual([12, 0]);
    },
  );

  it.each<Fault>(["rejects", "throws", "never answers", "fails late"])(
    "hands over at the next peek if the store %s during the hand-over before a peek",
    async (fault) => {
      const api = limiter();
      await away(api, 5);
      await vi.advanceTimersByTimeAsync(pausedMs);
      store.fault = fault;
      expect(await inTime(api.peek("k"))).toMatchObject({ degraded: true, remaining: 7 });
      store.fault = undefined;
      store.arrive();
      await vi.advanceTimersByTimeAsync(pausedMs);
      expect(await inTime(api.peek("k"))).toMatchObject({ degraded: false, remaining: 7 });
    },
  );

  it("counts requests during the hand-over", async () => {
    const api = limiter();
    await away(api, 5);
    await vi.advanceTimersByTimeAsync(pausedMs);
    store.fault = "answers late";
    const trying = api.consume("k");
    store.fault = undefined;
    // Only one request probes; the fallback decides the others meanwhile.
    expect(await api.consume("k")).toMatchObject({ degraded: true, remaining: 6 });
    store.arrive();
    expect(await trying).toMatchObject({ degraded: false });
    // Over-counting is safer: the store has the five and the probe, and then the five and the sixth once more.
    expect((await api.consume("k")).allowed).toBe(false);
    expect([used(inner, api), used(fallback, api)]).toEqual([12, 0]);
  });

  it("hands over the shared usage of several limiters of one name once, whichever asks first", async () => {
    const onStoreError = { store: fallback, share: 1 / 2 };
    const limiters = Array.from({ length: 3 }, () => createLimiter({ name: "api", policy, store, timeoutMs, onStoreError }));
    const [one, other, third] = limiters as [Limiter<"async">, Limiter<"async">, Limiter<"async">];
    expect(allowed(await away(one, 2)) + allowed(await away(other, 8))).toBe(6);
    await vi.advanceTimersByTimeAsync(pausedMs);
    await third.consume("k");
    for (const api of [one, other]) await api.peek("k");
    expect([used(inner, third), used(fallback, third)]).toEqual([7, 0]);
  });

  it("hands over each of several limits, also before a peek", async () => {
    const [a, b] = [limiter(policy, 1, "a"), limiter(policy, 1, "b")];
    const both = [a, b].map((one) => ({ limiter: one, key: "k" }));
    store.fault = "rejects";
    for (let i = 0; i < 5; i++) await consumeAll(both);
    store.fault = undefined;
    await vi.advanceTimersByTimeAsync(pausedMs);
    expect((await consumeAll(both)).all.map(({ remaining }) => remaining)).toEqual([6, 6]);
    await away(a, 5);
    await vi.advanceTimersByTimeAsync(pausedMs);
    expect(await a.peek("k")).toMatchObject({ remaining: 1, degraded: false });
  });

  it("does not hand over reset or refunded usage", async () => {
    const api = limiter();
    await away(api, 5);
    await vi.advanceTimersByTimeAsync(pausedMs);
    await api.reset("k");
    expect(await api.consume("k")).toMatchObject({ remaining: 11 });
    const decisions = await away(api, 6);
    await api.refund("k", decisions[0] as Decision);
    await vi.advanceTimersByTimeAsync(pausedMs);
    expect(await api.consume("k")).toMatchObject({ remaining: 5 });
  });

  it("hands over only what is still queued, even with maxDelayMs", async () => {
    const api = limiter(leakyBucket({ capacity: 1000, leak: 10, every: "1s", maxDelayMs: 300 }));
    store.fault = "rejects";
    await api.consume("k", { cost: 10 });
    expect(await api.consume("k")).toMatchObject({ allowed: false, remaining: 0 });
    store.fault = undefined;
    await vi.advanceTimersByTimeAsync(pausedMs);
    await api.consume("k");
    expect(inner.peek(api.limit, "k").resetAfterMs).toBeLessThanOrEqual(700);
  });

  it("hands over to a synchronous store synchronously", () => {
    let failing = true;
    const own = simpleStore();
    const sometimes: Store<"sync"> = {
      ...own,
      consume(limit, key, cost) {
        if (failing) throw new Error("disk");
        return own.consume(limit, key, cost);
      },
    };
    const api = createLimiter({ name: "api", policy, store: sometimes, onStoreError: fallback });
    for (let i = 0; i < 3; i++) api.consume("k");
    failing = false;
    expect(api.consume("k")).toMatchObject({ degraded: false, remaining: 8 });
  });

  it("takes at most timeoutMs for hand-over and decision, also with a store that keeps its own deadlines", async () => {
    const slow = new FaultyStore(inner);
    slow.keepsDeadlines = true;
    const { consume } = slow;
    slow.consume = async (...args) => {
      await new Promise((resolve) => setTimeout(resolve, 15));
      return consume.apply(slow, args);
    };
    replaceStore(slow);
    const api = limiter();
    await inTime(api.consume("k", { cost: 8 }));
    await away(api, 7);
    await vi.advanceTimersByTimeAsync(pausedMs);
    slow.timeouts.length = 0;
    expect(await inTime(api.consume("k"))).toMatchObject({ degraded: false, allowed: false });
    expect(slow.timeouts).toEqual([50, 35, 20]);
  });
});
