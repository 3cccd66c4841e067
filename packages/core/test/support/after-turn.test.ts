import { afterEach, expect, it, vi } from "vitest";
import { afterTurn } from "../../src/support/runtime.js";

afterEach(() => {
  vi.useRealTimers();
});

it("work after a turn runs although a test has faked nextTick, microtasks and timers, as Jest does by default", async () => {
  vi.useFakeTimers({ toFake: ["nextTick", "queueMicrotask", "setImmediate", "setTimeout"] });
  await expect(new Promise<string>((resolve) => afterTurn(() => resolve("ran")))).resolves.toBe("ran");
});
