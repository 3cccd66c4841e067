import { createLimiter, fixedWindow } from "@floodgate/core";
import { afterEach, expect, it, vi } from "vitest";
import { databaseStore } from "../src/index.js";
import { MapDriver } from "./map-driver.js";

afterEach(() => {
  vi.useRealTimers();
});

it("decides while a test has faked all clocks and timers, and after it", async () => {
  const [originMs, steadyMs] = [performance.timeOrigin, performance.now.bind(performance)];
  const driver = new MapDriver();
  driver.nowMs = () => Math.floor(originMs + steadyMs());
  const policy = fixedWindow({ limit: 4, window: "365d" });
  const limiter = createLimiter({ name: "api", policy, store: databaseStore(driver), onStoreError: "deny" });
  const decide = async () => await limiter.consume("key");
  expect(await decide()).toMatchObject({ remaining: 3, degraded: false });
  vi.useFakeTimers({ toFake: ["nextTick", "queueMicrotask", "setImmediate", "setTimeout", "performance", "Date"] });
  expect(await decide()).toMatchObject({ remaining: 2, degraded: false });
  vi.advanceTimersByTime(120_000);
  expect(await decide()).toMatchObject({ remaining: 1, degraded: false });
  vi.useRealTimers();
  expect(await decide()).toMatchObject({ remaining: 0, degraded: false });
});
