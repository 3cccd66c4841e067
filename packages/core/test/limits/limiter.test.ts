import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FaultyStore } from "../../../conformance/src/faulty-store.js";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { consumeAll, createLimiter, fixedWindow, type Policy, type Store } from "../../src/index.js";

// The clock stands still, so that no window ends within a test.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

const policy = fixedWindow({ limit: 3, window: "1m" });
const limiterOn = (store: Store<"sync">, of: Policy = policy) => createLimiter({ name: "api", policy: of, store });

describe("close", () => {
  const other = fixedWindow({ limit: 5, window: "1m" });

  it("gives the name back to the store, once", () => {
    const store = simpleStore();
    const [first, second] = [limiterOn(store), limiterOn(store)];
    expect(() => limiterOn(store, other)).toThrow(expect.objectContaining({ code: "FLOODGATE_NAME_TAKEN" }));
    first.close();
    first.close();
    expect(() => limiterOn(store, other)).toThrow(expect.objectContaining({ code: "FLOODGATE_NAME_TAKEN" }));
    second.close();
    expect(limiterOn(store, other).consume("k").remaining).toBe(4);
  });

  it("gives the name back to the fallback too", () => {
    const options = { name: "api", store: simpleStore(), onStoreError: simpleStore() };
    createLimiter({ ...options, policy }).close();
    expect(createLimiter({ ...options, policy: other }).consume("k").remaining).toBe(4);
  });

  it("keeps the counts: a module that is reloaded goes on with them", () => {
    const store = simpleStore();
    const limiter = limiterOn(store);
    limiter.consume("k");
    limiter.close();
    expect(limiterOn(store).consume("k").remaining).toBe(1);
  });
});

describe("a client without a key", () => {
  const missingKeyIp = "203.0.113.9";

  it("is blocked, looked at and reset, but not consumed: the JSON of a request could name any client", () => {
    const limiter = limiterOn(simpleStore());
    const json = JSON.parse(`{ "missingKeyIp": "${missingKeyIp}" }`);
    const refusal = expect.objectContaining({ code: "FLOODGATE_INVALID_KEY", message: expect.stringMatching(/^`consume` takes a key/) });
    expect(() => limiter.consume(json)).toThrow(refusal);
    expect(() => consumeAll([{ limiter, key: json }])).toThrow(refusal);
    limiter.block({ missingKeyIp }, "1m");
    expect(limiter.peek({ missingKeyIp }).allowed).toBe(false);
    limiter.reset({ missingKeyIp });
    expect(limiter.peek({ missingKeyIp }).allowed).toBe(false);
    limiter.unblock({ missingKeyIp });
    expect(limiter.peek({ missingKeyIp }).allowed).toBe(true);
  });
});

describe("block", () => {
  it.each([60, 0, -1, "soon", undefined, Number.NaN])("needs a duration, which %s is not", (duration) => {
    const limiter = limiterOn(simpleStore());
    expect(() => limiter.block("k", duration as never)).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_DURATION" }));
    expect(limiter.peek("k").allowed).toBe(true);
  });

  it("answers nothing, at once or by promise as the store does", async () => {
    const limiter = limiterOn(simpleStore());
    expect([limiter.block("k", "1m"), limiter.unblock("k")]).toEqual([undefined, undefined]);
    const store = new FaultyStore(simpleStore());
    const async = createLimiter({ name: "api", policy, store });
    expect(await Promise.all([async.block("k", "1m"), async.unblock("k")])).toEqual([undefined, undefined]);
  });

  it("fails as the store does, even where decisions are made without it", () => {
    const fault = new Error("away");
    const fail = (): never => {
      throw fault;
    };
    const limiter = createLimiter({ name: "api", policy, store: { ...simpleStore(), block: fail, unblock: fail }, onStoreError: "allow" });
    expect(() => limiter.block("k", "1m")).toThrow(fault);
    expect(() => limiter.unblock("k")).toThrow(fault);
  });
});

it("a decision says how many units of its limit are used", () => {
  const limiter = limiterOn(simpleStore());
  expect([limiter.peek("k").used, limiter.consume("k", { cost: 2 }).used, limiter.peek("k").used]).toEqual([0, 2, 2]);
  expect([limiter.consume("k", { cost: 2 }).used, limiter.consume("k").used]).toEqual([2, 3]);
  const charged = limiter.consume("other");
  limiter.settle("other", charged, 5);
  expect(limiter.peek("other")).toMatchObject({ used: 3, remaining: 0 });
});

it("a cost that is not in an object is refused, not taken for one unit", () => {
  const limiter = limiterOn(simpleStore());
  expect(() => limiter.consume("user:42", 3 as never)).toThrow("Write limiter.consume(key, { cost: 3 }).");
  expect(() => limiter.consume("user:42", { points: 3 } as never)).toThrow("consume has no option `points`. Write cost: 3.");
  expect(() => limiter.consume("user:42", null as never)).toThrow("consume takes an object of options");
  expect(limiter.consume("user:42", {}).remaining).toBe(2);
  expect(limiter.consume("user:42", { cost: undefined } as never).remaining).toBe(1);
});
