import { describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { RateLimit } from "../../src/adapter.js";
import { consumeAll, createLimiter, fixedWindow, type Store } from "../../src/index.js";
import { reader } from "../reader.js";

const policy = fixedWindow({ limit: 1, window: "365d" });

/** An asynchronous store that decides at once. */
function quickStore(): Store<"async"> {
  return { ...simpleStore(), mode: "async" } as unknown as Store<"async">;
}

describe("an asynchronous store that decides at once", () => {
  it("makes limiters return promises all the same", async () => {
    const limiter = createLimiter({ name: "api", policy, store: quickStore() });
    const answers = [limiter.consume("a"), limiter.peek("a"), consumeAll([{ limiter, key: "b" }])];
    for (const answer of answers) expect(answer).toBeInstanceOf(Promise);
    expect(await Promise.all(answers)).toMatchObject([{ allowed: true }, { allowed: false }, { allowed: true }]);
  });

  it("makes no promise in a middleware, of one rule or several", () => {
    const one = new RateLimit("test", { policy, store: quickStore() }, [], reader, () => simpleStore());
    const rules = ["x", "y"].map((name) => ({ name, key: "global", policy }));
    const several = new RateLimit("test", { rules, store: quickStore() }, [], reader, () => simpleStore());
    for (const limit of [one, several]) {
      expect([limit.decide({}), limit.decide({})]).toMatchObject([{ action: "pass" }, { action: "reject" }]);
    }
  });

  it("that fails at once makes limiters return a degraded decision by promise, and a middleware pass at once", async () => {
    const fails = (): never => {
      throw new Error("away");
    };
    const store = { ...quickStore(), consume: fails, consumeAll: fails, peek: fails } as Store<"async">;
    const limiter = createLimiter({ name: "api", policy, store, onEvent: () => undefined });
    const answer = limiter.consume("a");
    expect(answer).toBeInstanceOf(Promise);
    expect(await answer).toMatchObject({ allowed: true, degraded: true });
    const limit = new RateLimit("test", { policy, store, onEvent: () => undefined }, [], reader, () => simpleStore());
    expect(limit.decide({})).toMatchObject({ action: "pass", decision: { degraded: true } });
  });
});

describe("answers from a cache", () => {
  /** A store that answers the key "cached" at once, and fails for all others until it is repaired. */
  function halfCachedStore(answersFromCache: boolean): { store: Store<"async">; repair: () => void } {
    const inner = simpleStore();
    let isBroken = true;
    const store = {
      ...inner,
      mode: "async",
      answersFromCache,
      consume: (limit: never, key: string, cost: number) => {
        if (key === "cached") return inner.consume(limit, key, cost);
        return isBroken ? Promise.reject(new Error("away")) : Promise.resolve(inner.consume(limit, key, cost));
      },
    } as unknown as Store<"async">;
    return {
      store,
      repair: () => {
        isBroken = false;
      },
    };
  }

  it.each([true, false])("are no calls of the store for the circuit breaker, if the store says so: %s", async (answersFromCache) => {
    vi.useFakeTimers();
    try {
      const { store, repair } = halfCachedStore(answersFromCache);
      const states: string[] = [];
      const limiter = createLimiter({
        name: "api",
        policy,
        store,
        onEvent: (event) => void (event.type === "breaker" && states.push(event.state)),
      });
      for (let i = 0; i < 5; i++) {
        await limiter.consume("cached");
        await limiter.consume("away");
      }
      // Others would be answers between the failures, so that they are not five in a row.
      expect(states).toEqual(answersFromCache ? ["open"] : []);
      if (!answersFromCache) return;
      vi.advanceTimersByTime(375);
      expect(await limiter.consume("cached")).toMatchObject({ degraded: false });
      expect(states).toEqual(["open", "half-open"]);
      repair();
      // The cached answer was no probe, so the next request is.
      expect(await limiter.consume("away")).toMatchObject({ degraded: false });
      expect(states).toEqual(["open", "half-open", "closed"]);
    } finally {
      vi.useRealTimers();
    }
  });
});
