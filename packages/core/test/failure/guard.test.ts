import { describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { consumeAll, createLimiter, type Decision, type Store } from "../../src/index.js";
import { fault } from "../faulty-store.js";
import {
  choices,
  consume,
  events,
  faults,
  inTime,
  kinds,
  limiter,
  onStoreError,
  policy,
  store,
  timeoutMs,
  useStore,
} from "./guard-world.js";

useStore();

describe.each(faults)("a store that %s", (how) => {
  it.each(choices)("is replaced by %s: decisions are degraded and emit an event", async (choice) => {
    const api = limiter({ onStoreError: onStoreError(choice) });
    store.fault = how;
    const decision = await inTime(api.consume("k", { cost: 2 }));
    expect(decision).toMatchObject({ allowed: choice !== "deny", degraded: true, cost: 2, name: "api", policy, delayMs: 0 });
    expect(kinds()).toEqual(["store-error", "degraded"]);
    const charged = choice === "fallback" ? 2 : 0;
    expect(events[1]).toEqual({ type: "degraded", name: "api", key: "k", decision, shadow: false, charged, storeMs: expect.any(Number) });
  });

  it("delays no call longer than timeoutMs", async () => {
    const api = limiter();
    const other = limiter({ name: "other" });
    store.fault = how;
    const both = [
      { limiter: api, key: "k" },
      { limiter: other, key: "k" },
    ];
    const decisions: Decision[] = [];
    for (const answer of [api.consume("k"), api.peek("k"), consumeAll(both).then(({ decision }) => decision)]) {
      void answer.then((decision) => decisions.push(decision));
    }
    await vi.advanceTimersByTimeAsync(timeoutMs);
    expect(decisions.map(({ degraded }) => degraded)).toEqual([true, true, true]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is not called after five errors, and decides again within a second of its return", async () => {
    const api = limiter();
    store.fault = how;
    await consume(api, 5);
    const { asked } = store;
    expect((await consume(api, 3)).every(({ degraded }) => degraded)).toBe(true);
    expect(store.asked).toBe(asked);
    await consume(api, 40);
    expect(store.asked - asked).toBeLessThanOrEqual((40 * timeoutMs) / 225);
    store.fault = undefined;
    const backMs = performance.now();
    while ((await inTime(api.consume("k"))).degraded) expect(performance.now() - backMs).toBeLessThan(1000);
    const states = events.flatMap((event) => (event.type === "breaker" ? [event.state] : []));
    expect([states[0], states.indexOf("closed")]).toEqual(["open", states.length - 1]);
    expect((await api.peek("k")).degraded).toBe(false);
  });

  it("cannot change a decision by a late answer", async () => {
    const api = limiter({ onStoreError: "deny" });
    store.fault = how;
    const answer = api.consume("k");
    const decision = await inTime(answer);
    const before = kinds();
    store.arrive();
    await vi.advanceTimersByTimeAsync(timeoutMs);
    expect(await answer).toBe(decision);
    expect(kinds()).toEqual(before);
  });

  it("fails refunds, settlements and resets within timeoutMs", async () => {
    const api = limiter();
    const [refunded, settled] = [await inTime(api.consume("k")), await inTime(api.consume("k"))];
    store.fault = how;
    for (const ask of [() => api.refund("k", refunded), () => api.settle("k", settled, 9), () => api.reset("k")]) {
      await expect(inTime((async () => await ask())())).rejects.toThrow(/away|did not answer within 50 ms/);
    }
    expect(kinds()).toEqual(["allowed", "allowed"]);
  });
});

describe("a decision without the store", () => {
  it('by "allow" has no known numbers', async () => {
    store.fault = "rejects";
    const decision = await limiter({ onStoreError: "allow" }).consume("k");
    expect(decision).toMatchObject({ allowed: true, limit: 5, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, atMs: Date.now() });
  });

  it('by "deny" says when the store is asked again', async () => {
    const api = limiter({ onStoreError: "deny" });
    store.fault = "rejects";
    expect((await consume(api, 5)).map(({ retryAfterMs }) => retryAfterMs)).toEqual([0, 0, 0, 0, expect.any(Number)]);
    const { retryAfterMs, allowed } = await api.consume("k");
    expect(allowed).toBe(false);
    vi.advanceTimersByTime(retryAfterMs - 1);
    const { asked } = store;
    await api.consume("k");
    expect(store.asked).toBe(asked);
    vi.advanceTimersByTime(1);
    await api.consume("k");
    expect(store.asked).toBe(asked + 1);
  });

  it("covers each of several limits", async () => {
    store.fault = "rejects";
    const [a, b] = [limiter({ onStoreError: "deny" }), limiter({ name: "b" })];
    const { allowed, all } = await consumeAll([
      { limiter: a, key: "k" },
      { limiter: b, key: "k", cost: 3 },
    ]);
    expect([allowed, all.map(({ name, cost, degraded }) => [name, cost, degraded])]).toEqual([
      false,
      [
        ["api", 1, true],
        ["b", 3, true],
      ],
    ]);
  });

  it("has nothing to refund", async () => {
    const api = limiter();
    store.fault = "rejects";
    const decision = await api.consume("k");
    store.fault = undefined;
    const { asked } = store;
    expect([await api.refund("k", decision), store.asked]).toEqual([0, asked]);
  });

  it("also answers peeks, which probe the store like other calls", async () => {
    const api = limiter({ onStoreError: "deny" });
    store.fault = "rejects";
    await consume(api, 5);
    expect(await api.peek("k")).toMatchObject({ degraded: true, allowed: false });
    store.fault = undefined;
    vi.advanceTimersByTime(375);
    expect(await api.peek("k")).toMatchObject({ degraded: false, remaining: 5 });
    expect(kinds().slice(-2)).toEqual(["half-open", "closed"]);
  });
});

describe("a synchronous store", () => {
  const failing = (): Store<"sync"> => ({
    ...simpleStore(),
    consume: () => {
      throw fault;
    },
  });

  it("throws its errors without onStoreError", () => {
    expect(() => createLimiter({ name: "api", policy, store: failing() }).consume("k")).toThrow(fault);
  });

  it.each(choices)("that fails is replaced by %s synchronously", (choice) => {
    const api = createLimiter({ name: "api", policy, store: failing(), onStoreError: onStoreError(choice) });
    const decision = api.consume("k");
    expect(decision).toMatchObject({ allowed: choice !== "deny", degraded: true });
    expect(api.refund("k", decision)).toBe(choice === "fallback" ? 1 : 0);
    expect(api.settle("k", api.consume("k"), 9)).toBe(choice === "fallback" ? 8 : 0);
    expect(api.reset("k")).toBeUndefined();
  });

  it("refunds nothing for an uncharged decision", () => {
    const down: Store<"sync"> = { ...simpleStore(), consumeAll: failing().consume as never };
    const [guarded, bare] = [
      createLimiter({ name: "guarded", policy, store: down, onStoreError: "allow" }),
      createLimiter({ name: "bare", policy, store: down }),
    ];
    bare.consume("k");
    const { all } = consumeAll([guarded, bare].map((one) => ({ limiter: one, key: "k" })));
    expect([bare.refund("k", all[1] as Decision), bare.peek("k").remaining]).toEqual([0, 4]);
  });

  it("refunds what another limiter's fallback charged for it", () => {
    const down: Store<"sync"> = { ...simpleStore(), consumeAll: failing().consume as never };
    const fallback = simpleStore();
    const [guarded, bare] = [
      createLimiter({ name: "guarded", policy, store: down, onStoreError: fallback }),
      createLimiter({ name: "bare", policy, store: down }),
    ];
    const { all } = consumeAll([guarded, bare].map((one) => ({ limiter: one, key: "k", cost: 3 })));
    expect([bare.refund("k", all[1] as Decision), fallback.peek(bare.limit, "k").remaining]).toEqual([3, 5]);
  });
});

describe("a guard", () => {
  it("uses one timer for all waiting calls, and leaves none behind", async () => {
    const api = limiter();
    const charges = await Promise.all(Array.from({ length: 200 }, (_, i) => api.consume(`k${i}`)));
    store.fault = "never answers";
    const waiting = Promise.all(charges.map((decision, i) => api.refund(`k${i}`, decision)));
    waiting.catch(() => undefined);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(timeoutMs);
    await expect(waiting).rejects.toThrow("did not answer");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("stops its timer when all calls are answered", async () => {
    const api = limiter();
    await api.consume("k");
    await vi.advanceTimersByTimeAsync(timeoutMs - 1);
    await api.consume("k");
    // The timer that watches the event loop fires once more.
    await vi.advanceTimersByTimeAsync(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("passes timeoutMs to a store that keeps its own deadlines, and sets no timer", async () => {
    store.keepsDeadlines = true;
    const api = limiter();
    const decision = await api.consume("k");
    await consumeAll([{ limiter: api, key: "k" }]);
    await api.peek("k");
    await api.refund("k", decision);
    await api.reset("k");
    expect(store.timeouts).toEqual(Array.from({ length: 5 }, () => timeoutMs));
    expect(vi.getTimerCount()).toBe(0);
  });

  it("waits 100 ms by default", async () => {
    const api = createLimiter({ name: "api", policy, store });
    store.fault = "never answers";
    let decision: Decision | undefined;
    void api.consume("k").then((made) => {
      decision = made;
    });
    await vi.advanceTimersByTimeAsync(99);
    expect(decision).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(decision).toMatchObject({ allowed: true, degraded: true });
  });
});
