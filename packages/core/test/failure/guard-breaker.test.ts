import { describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { RateLimit, type RateLimitOptions } from "../../src/adapter.js";
import { consumeAll, createLimiter, FloodgateError, type FloodgateEvent, fixedWindow, type Limiter, type Store } from "../../src/index.js";
import { FaultyStore } from "../faulty-store.js";
import { consume, inTime, kinds, limiter, policy, store, timeoutMs, useStore } from "./guard-world.js";

useStore();

describe("the breaker", () => {
  it("is shared by all limiters of a store, and notifies all of them", async () => {
    const heard: string[] = [];
    const [a, b] = ["a", "b"].map((name) =>
      limiter({ name, onEvent: (event) => void (event.type === "breaker" && heard.push(`${name} ${event.state}`)) }),
    ) as [ReturnType<typeof limiter>, ReturnType<typeof limiter>];
    store.fault = "rejects";
    await consume(a, 5);
    const { asked } = store;
    expect((await b.consume("k")).degraded).toBe(true);
    expect(store.asked).toBe(asked);
    store.fault = undefined;
    vi.advanceTimersByTime(375);
    expect([(await b.consume("k")).degraded, (await a.consume("k")).degraded]).toEqual([false, false]);
    expect(heard).toEqual(["a open", "b open", "a half-open", "b half-open", "a closed", "b closed"]);
  });

  it("has no listeners from limiters that failed at set-up", async () => {
    const api = limiter({ onEvent: () => undefined });
    const heard: string[] = [];
    const hearing = (who: string) => () => void heard.push(who);
    expect(() => limiter({ policy: fixedWindow({ limit: 6, window: "1h" }), onEvent: hearing("limiter") })).toThrow(/name/);
    const options: RateLimitOptions<object, string> = { limit: -1, window: "1h", store, onEvent: hearing("middleware") };
    expect(() => new RateLimit("test", options, [], {} as never, () => simpleStore())).toThrow(/limit/);
    store.fault = "rejects";
    await consume(api, 5);
    expect(heard).toEqual([]);
  });

  it("does not fail requests when a listener throws", async () => {
    limiter({
      name: "a",
      onEvent: () => {
        throw new Error("listener");
      },
    });
    store.fault = "rejects";
    expect((await consume(limiter({ name: "b" }), 6)).map(({ degraded }) => degraded)).not.toContain(false);
    expect(kinds()).toContain("open");
  });

  it("is separate for each store", async () => {
    store.fault = "rejects";
    await consume(limiter(), 5);
    expect((await limiter({ store: new FaultyStore(simpleStore()) }).consume("k")).degraded).toBe(false);
  });

  it("admits one probe of many concurrent requests", async () => {
    const api = limiter();
    store.fault = "never answers";
    await consume(api, 5);
    vi.advanceTimersByTime(375);
    const { asked } = store;
    await inTime(Promise.all(Array.from({ length: 20 }, () => api.consume("k"))));
    expect(store.asked).toBe(asked + 1);
  });

  it("stays closed if requests only time out in our own queue, which says nothing about the store", async () => {
    const busy: Store<"sync"> = {
      ...simpleStore(),
      consume() {
        throw new FloodgateError("FLOODGATE_QUEUE_TIMEOUT", "Others are first.");
      },
    };
    const store = new FaultyStore(busy);
    const api = limiter({ store });
    for (let i = 0; i < 20; i++) expect((await api.consume("k")).degraded).toBe(true);
    expect(store.asked).toBe(20);
  });

  it.each(["closed", "half-open"])("that is %s treats an error of one key as an answer", async (state) => {
    const inner = simpleStore();
    const foreign: Store<"sync"> = {
      ...inner,
      consume(limit, key, cost) {
        if (key === "foreign") throw new FloodgateError("FLOODGATE_FOREIGN_VALUE", "The key holds something else.");
        return inner.consume(limit, key, cost);
      },
    };
    const store = new FaultyStore(foreign);
    const api = limiter({ store });
    if (state === "half-open") {
      store.fault = "rejects";
      await consume(api, 5);
      store.fault = undefined;
      vi.advanceTimersByTime(375);
    }
    for (let i = 0; i < 10; i++) expect((await api.consume("foreign")).degraded).toBe(true);
    expect((await api.consume("k")).degraded).toBe(false);
  });

  it("is not closed by answers to calls from before it opened", async () => {
    const api = limiter();
    store.fault = "answers late";
    const slow = api.consume("slow");
    store.fault = "rejects";
    await Promise.all(Array.from({ length: 5 }, () => api.consume("k")));
    store.arrive();
    expect((await slow).degraded).toBe(false);
    expect((await api.consume("k")).degraded).toBe(true);
    expect(kinds().filter((kind) => kind === "closed")).toEqual([]);
  });

  it.each([[undefined], [null], [true], [{}], [{ allowed: true }], [{ policy: {} }]])(
    "treats an invalid answer as a store error and decides without the store: %o",
    async (answer) => {
      const events: FloodgateEvent[] = [];
      const said = async (): Promise<never> => answer as never;
      const settle = async (): Promise<number> => 0;
      const wrong: Store<"async"> = {
        mode: "async",
        consume: said,
        peek: said,
        consumeAll: async () => [await said()],
        settle,
        reset: said,
        block: said,
        unblock: said,
        keyState: said,
      };
      const options = {
        store: wrong,
        policy,
        timeoutMs,
        onEvent: (event: FloodgateEvent) => void (event.type !== "request" && events.push(event)),
      };
      const [one, other] = ["one", "other"].map((name) => createLimiter({ ...options, name })) as [Limiter<"async">, Limiter<"async">];
      expect(await one.consume("k")).toMatchObject({ allowed: true, degraded: true });
      const checks = [one, other].map((limiter) => ({ limiter, key: "k" }));
      expect(await consumeAll(checks)).toMatchObject({ allowed: true, decision: { degraded: true } });
      const error = expect.objectContaining({ code: "FLOODGATE_STORE_FAULT" });
      expect(events.filter(({ type }) => type === "store-error")).toMatchObject([{ error }, { error }]);
    },
  );

  it("keeps working when a listener throws, and so do requests", async () => {
    vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const api = limiter({ onEvent: () => expect.unreachable("listener") });
    const ask = async () => await inTime((async () => await api.consume("k"))());
    store.fault = "rejects";
    for (let i = 0; i < 5; i++) expect((await ask()).degraded).toBe(true);
    const { asked } = store;
    expect([(await ask()).degraded, store.asked]).toEqual([true, asked]);
    vi.advanceTimersByTime(375);
    expect([(await ask()).degraded, store.asked]).toEqual([true, asked + 1]);
    store.fault = undefined;
    vi.advanceTimersByTime(timeoutMs + 375);
    expect((await ask()).degraded).toBe(false);
  });
});
