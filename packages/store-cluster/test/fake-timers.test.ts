import { MessageChannel } from "node:worker_threads";
import { createLimiter, fixedWindow } from "@floodgate/core";
import { afterEach, expect, it, vi } from "vitest";
import { connected } from "./connected.js";

afterEach(() => {
  vi.useRealTimers();
});

it("decides calls that wait for a batch while a test has faked ticks, microtasks and timers", async () => {
  const store = connected({});
  try {
    const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 9, window: "365d" }), store, onStoreError: "deny" });
    vi.useFakeTimers({ toFake: ["nextTick", "queueMicrotask", "setImmediate", "setTimeout"] });
    const first = limiter.consume("key");
    await Promise.resolve();
    // The first batch is sent after this turn, and the next call has to wait for its answer.
    await new Promise<void>((resolve) => new MessageChannel().port1.once("close", resolve).close());
    const second = limiter.consume("key", { cost: 2 });
    expect([await first, await second]).toMatchObject([{ remaining: 8 }, { remaining: 6 }]);
  } finally {
    store.close();
  }
});
