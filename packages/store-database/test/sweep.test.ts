import { setTimeout as sleep } from "node:timers/promises";
import { fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { afterEach, describe, expect, it, vi } from "vitest";
import { expectWarnings } from "../../../test/expected-warnings.js";
import { databaseStore } from "../src/index.js";
import { MapDriver } from "./map-driver.js";

const patienceMs = 30_000;
const limit = createLimit("limit", fixedWindow({ limit: 1, window: "1s" }));

expectWarnings("FLOODGATE_SWEEP_FAILED");
afterEach(() => void vi.useRealTimers());

describe("rows that have ended", () => {
  it("are swept by whoever decides, at most once a second, and count for nothing before", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const driver = new MapDriver();
    let nowMs = Date.now();
    driver.nowMs = () => nowMs;
    const store = databaseStore(driver, { denyCache: false });
    for (let i = 0; i < 10; i++) await store.consume(limit, `key-${i}`, 1, patienceMs);
    // Time passes by both clocks, but less than a second by that of sweeps.
    nowMs += 120_000;
    vi.advanceTimersByTime(1);
    expect(await store.consume(limit, "key-0", 1, patienceMs)).toMatchObject({ allowed: true });
    expect(driver.rows.size).toBe(10);
    vi.advanceTimersByTime(1100);
    await store.consume(limit, "key-11", 1, patienceMs);
    await sleep(0);
    expect(driver.rows.size).toBe(2);
  });

  it("are told of once if they cannot be deleted, after five sweeps in a row that failed", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const driver = new MapDriver();
    driver.nowMs = Date.now;
    let sweeps = 0;
    const store = databaseStore(Object.assign(driver, { sweep: () => (++sweeps === 4 ? Promise.resolve() : Promise.reject("denied")) }));
    const told: number[] = [];
    for (let i = 1; i <= 12; i++) {
      vi.advanceTimersByTime(1000);
      await store.consume(limit, `key-${i}`, 1, patienceMs);
      await sleep(0);
      if (told.length < vi.mocked(console.warn).mock.calls.length) told.push(sweeps);
    }
    expect([sweeps, told]).toEqual([12, [9]]);
  });
});
