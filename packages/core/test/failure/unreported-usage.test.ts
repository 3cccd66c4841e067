import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { guardStore, type StoreGuard } from "../../src/failure/store-guard.js";
import { type Decision, fixedWindow, tokenBucket } from "../../src/index.js";
import { FaultyStore } from "../faulty-store.js";
import { away, fallback, inner, limiter, pausedMs, used, useFallback } from "./fallback-world.js";

useFallback();

const hourMs = 3_600_000;

describe("usage that a fallback must hand over", () => {
  it("is read only while it may still count", async () => {
    const api = limiter();
    await away(api, 1);
    await vi.advanceTimersByTimeAsync(hourMs - 100);
    const looks = vi.spyOn(fallback, "peek");
    await api.consume("other");
    expect(looks).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(100);
    for (let i = 0; i < 3; i++) await api.consume("other");
    expect(looks).toHaveBeenCalledTimes(2);
    await away(api, 5);
    await vi.advanceTimersByTimeAsync(pausedMs);
    expect(await api.consume("k")).toMatchObject({ degraded: false, remaining: 6 });
  });

  it("is handed over until the last of it expires, in whatever order limits are used", async () => {
    const [long, short] = [limiter(undefined, 1, "long"), limiter(fixedWindow({ limit: 12, window: "1m" }), 1, "short")];
    await away(long, 5);
    await away(short, 5);
    await vi.advanceTimersByTimeAsync(120_000);
    await short.consume("other");
    expect(await long.consume("k")).toMatchObject({ degraded: false, remaining: 6 });
  });

  it("includes a debt from a settlement after expiry", async () => {
    const api = limiter(tokenBucket({ capacity: 12, refill: 12, every: "1h" }));
    const [decision] = await away(api, 1);
    await vi.advanceTimersByTimeAsync(2 * hourMs);
    await api.consume("other");
    expect(await api.settle("k", decision as Decision, 8)).toBe(7);
    expect(await api.consume("k")).toMatchObject({ degraded: false, remaining: 4 });
    expect([used(inner, api), used(fallback, api)]).toEqual([8, 0]);
  });

  it("is garbage collected with its store", async () => {
    setFlagsFromString("--expose_gc");
    const gone = Array.from({ length: 20 }, () => {
      const guard = guardStore("test", new FaultyStore(simpleStore()), { onStoreError: { store: fallback, share: 1 } });
      return new WeakRef((guard as StoreGuard<"async">).fallback as object);
    });
    vi.useRealTimers();
    await new Promise((resolve) => setImmediate(resolve));
    runInNewContext("gc")();
    expect(gone.filter((one) => one.deref() !== undefined)).toEqual([]);
  });
});
