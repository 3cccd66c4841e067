import { expect, it, vi } from "vitest";
import { HeldRequests } from "../../src/responses/held-requests.js";

it("a held request passes once, whether its time comes, it is released, or its client leaves at the same moment", () => {
  vi.useFakeTimers();
  try {
    for (const [acts, expected] of [
      [["wait"], 1],
      [["release"], 1],
      [["release", "wait"], 1],
      [["wait", "release"], 1],
      [["cancel", "wait", "release"], 0],
      [["release", "cancel", "wait"], 1],
    ] as const) {
      const held = new HeldRequests();
      let passed = 0;
      const cancel = held.hold(1000, () => passed++);
      const act = { wait: () => vi.advanceTimersByTime(1000), release: () => held.release(), cancel: () => cancel() };
      for (const name of acts) act[name]();
      expect([passed, held.size], acts.join()).toEqual([expected, 0]);
      expect(cancel()).toBe(false);
    }
  } finally {
    vi.useRealTimers();
  }
});
