import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { consumeAll, createLimiter, fixedWindow, type Store } from "../../src/index.js";

// The clock stands still, so that no window ends within a test.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

const five = fixedWindow({ limit: 5, window: "1m" });
const hundred = fixedWindow({ limit: 100, window: "1m" });
const taken = (message: RegExp) => expect.objectContaining({ code: "FLOODGATE_NAME_TAKEN", message: expect.stringMatching(message) });

describe("on stores that share their counts, a name", () => {
  const scope = {};
  const counts = simpleStore();
  const [one, other]: Store<"sync">[] = [
    { ...counts, scope },
    { ...counts, scope },
  ];
  const api = createLimiter({ name: "api", policy: five, store: one as Store<"sync"> });

  it("has one policy", () => {
    expect(() => createLimiter({ name: "api", policy: hundred, store: other as Store<"sync"> })).toThrow(
      taken(/^createLimiter: the name "api" already stands for another policy on this store\. Give this one another name/),
    );
    expect(createLimiter({ name: "api", policy: hundred, store: counts }).policy).toBe(hundred);
  });

  it("can be checked in one step with names on the other stores", () => {
    const day = createLimiter({ name: "day", policy: hundred, store: other as Store<"sync"> });
    consumeAll([api, day].map((limiter) => ({ limiter, key: "k" })));
    expect([api.peek("k").remaining, day.peek("k").remaining]).toEqual([4, 99]);
  });

  it("cannot use one of these stores as the fallback of another", () => {
    expect(() => createLimiter({ name: "b", policy: five, store: one as Store<"sync">, onStoreError: other as Store<"sync"> })).toThrow(
      /must be another store than `store`/,
    );
  });
});

describe("on a fallback, a name belongs to one limit of one store", () => {
  const named = (store: Store<"sync">, fallback?: Store<"sync">, share = 1) =>
    createLimiter({
      name: "default",
      policy: five,
      store,
      ...(fallback === undefined ? {} : { onStoreError: { store: fallback, share } }),
    });
  const message = /the name "default" already stands for a limit of another store, or another share of it, on this store/;

  it.each<[string, (store: Store<"sync">, fallback: Store<"sync">) => unknown]>([
    ["the fallback's own limit", (_, fallback) => named(fallback)],
    ["the limit of another store", (_, fallback) => named(simpleStore(), fallback)],
    ["another share of the same limit", (store, fallback) => named(store, fallback, 1 / 2)],
  ])("and is refused for %s, in either order", (_, make) => {
    for (const order of [0, 1]) {
      const [store, fallback] = [simpleStore(), simpleStore()];
      const both = [() => named(store, fallback), () => make(store, fallback)];
      if (order === 1) both.reverse();
      both[0]?.();
      expect(both[1]).toThrow(taken(message));
    }
  });

  it("and the error names onStoreError; the refused limiter reserves no name", () => {
    const [store, fallback] = [simpleStore(), simpleStore()];
    named(fallback);
    expect(() => named(store, fallback)).toThrow(taken(/^createLimiter: onStoreError: the name "default"/));
    expect(createLimiter({ name: "default", policy: hundred, store }).policy).toBe(hundred);
  });

  it("and all limiters of that limit may use it", () => {
    const [store, fallback] = [simpleStore(), simpleStore()];
    expect([named(store, fallback).name, named(store, fallback).name, named(store).name]).toEqual(["default", "default", "default"]);
  });
});
