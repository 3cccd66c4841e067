import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Deadlines, msUntil } from "../../src/failure/deadlines.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("whoever waits is told when its deadline has passed, once, and not if it has its answer; one timer does for all", () => {
  const waiter = fc.record({ atMs: fc.nat(50), forMs: fc.double({ min: 0.5, max: 60, noNaN: true }), answeredAfterMs: fc.nat(80) });
  fc.assert(
    fc.property(fc.array(waiter, { maxLength: 30 }), (waiters) => {
      const deadlines = new Deadlines();
      const startMs = performance.now();
      const told = waiters.map((): number[] => []);
      const waiting = waiters.map(({ atMs, forMs }, i) => ({
        deadlineMs: startMs + atMs + forMs,
        place: -1,
        expire: () => void told[i]?.push(performance.now() - startMs),
      }));
      for (let nowMs = 0; nowMs <= 150; nowMs++) {
        waiters.forEach(({ atMs, answeredAfterMs }, i) => {
          const one = waiting[i] as (typeof waiting)[number];
          if (atMs === nowMs) deadlines.add(one);
          if (atMs + answeredAfterMs === nowMs) deadlines.delete(one);
        });
        expect(vi.getTimerCount()).toBeLessThanOrEqual(1);
        vi.advanceTimersByTime(1);
      }
      waiters.forEach(({ atMs, forMs, answeredAfterMs }, i) => {
        expect(told[i]).toEqual(answeredAfterMs < forMs ? [] : [Math.ceil(atMs + forMs)]);
      });
      expect(vi.getTimerCount()).toBe(0);
    }),
    { numRuns: 100 },
  );
});

test("the timer keeps no process alive", () => {
  const timers = vi.spyOn(globalThis, "setTimeout");
  new Deadlines().add({ deadlineMs: performance.now() + 10, place: -1, expire: () => undefined });
  expect(timers.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())).toEqual([false]);
});

test("of a time that has passed there is still a millisecond left", () => {
  const nowMs = performance.now();
  expect([msUntil(nowMs + 20), msUntil(nowMs), msUntil(nowMs - 20)]).toEqual([20, 1, 1]);
});
