import { createLimiter, fixedWindow } from "@floodgate/core";
import type { InventoryLimit } from "@floodgate/core/rules";
import { memoryStore } from "@floodgate/store-memory";
import { afterEach, describe, expect, it, vi } from "vitest";
import { InUse } from "../../src/collect/in-use.js";
import { joinWatch } from "../../src/collect/watch.js";
import { wholeRequests } from "../../src/contract.js";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("what is in use", () => {
  it("is read at most ten times a second, however many limiters are made", () => {
    let reads = 0;
    const inUse = new InUse(() => {
      reads++;
      return { limits: [], stores: [], sources: [] };
    });
    for (let user = 0; user < 1000; user++) inUse.countsOf(`user-${user}`);
    expect(reads).toBe(11);
    inUse.refresh();
    inUse.countsOf("user-2000");
    expect(reads).toBe(13);
  });

  it("is listed up to 500 limits and stores, each limit once", () => {
    const policy = fixedWindow({ limit: 1, window: "1m" });
    const shared = memoryStore({ maxKeys: 10 });
    const twice = [1, 2].map(() => createLimiter({ name: "twice", policy, store: shared }));
    const many = Array.from({ length: 600 }, (_, i) => createLimiter({ name: `user-${i}`, policy, store: memoryStore({ maxKeys: 10 }) }));
    const limits = [...twice, ...many].map((limiter): InventoryLimit => {
      return { name: limiter.name, limiter, shadow: false, policy, plans: undefined, rule: undefined, source: undefined };
    });
    const stores = [shared, ...many.map(({ store }) => store)].map((store) => ({
      store,
      size: store.size,
      breaker: undefined,
      breakers: new Map(),
    }));
    const inUse = new InUse(() => ({ limits, stores, sources: [] }));
    expect(inUse.rules().map(({ name }) => name)).toEqual(["twice", ...Array.from({ length: 499 }, (_, i) => `user-${i}`)]);
    const listed = inUse.stores(Date.now());
    expect(listed.map(({ rules }) => rules)).toEqual(inUse.rules().map(({ name }) => [name]));
    for (const limiter of [...twice, ...many]) limiter.close();
  });

  it("may fail to be read, which ends neither the process nor the counting", () => {
    vi.useFakeTimers();
    const warnings = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const ended = vi.fn();
    const { watch, leave } = joinWatch(ended);
    const store = memoryStore();
    const limiter = createLimiter({ name: "broken-size", policy: fixedWindow({ limit: 1, window: "1m" }), store });
    Object.defineProperty(store, "size", {
      configurable: true,
      get: () => {
        throw new Error("no size");
      },
    });
    try {
      vi.advanceTimersByTime(3000);
      expect(ended).not.toHaveBeenCalled();
      expect(warnings).toHaveBeenCalledTimes(1);
      expect(warnings.mock.calls[0]?.[0]).toMatch(/^\[floodgate\] FLOODGATE_DASHBOARD_FAILED: .*no size$/);
      limiter.consume("ann");
      Reflect.deleteProperty(store, "size");
      vi.advanceTimersByTime(2000);
      expect(watch.collector.totals()).toMatchObject([
        { rule: wholeRequests, counts: { allowed: 1 } },
        { rule: "broken-size", counts: { allowed: 1 } },
      ]);
    } finally {
      leave();
      limiter.close();
    }
  });
});
