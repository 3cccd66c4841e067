import fc from "fast-check";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { runs } from "../../../../test/runs.js";
import type { Waiter } from "../../src/failure/deadlines.js";
import { FakeLoop } from "./fake-loop.js";

let loop: FakeLoop;

/** Loads the module as on a runtime with or without `setImmediate`. */
async function loaded(hasImmediates: boolean) {
  vi.stubGlobal("setImmediate", hasImmediates ? (run: () => void) => loop.immediately(run) : undefined);
  vi.resetModules();
  const deadlines = await import("../../src/failure/deadlines.js");
  vi.unstubAllGlobals();
  class TestWaiter extends deadlines.Waiter {
    readonly #tell: () => void;

    constructor(timeoutMs: number, tell: () => void) {
      super(timeoutMs);
      this.#tell = tell;
    }

    expire(): void {
      this.#tell();
    }
  }
  return { ...deadlines, waiter: (timeoutMs: number, tell: () => void = () => undefined): Waiter => new TestWaiter(timeoutMs, tell) };
}

let runtimes: Record<"with" | "without", Awaited<ReturnType<typeof loaded>>>;
beforeAll(async () => {
  runtimes = { with: await loaded(true), without: await loaded(false) };
});

/** The duration of an event loop turn with fake timers. */
const turnMs = 1;

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

describe("in an idle process", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  test("each waiter expires once at its deadline unless it was answered, and one timer serves all", () => {
    const { addWaiter, waiter } = runtimes.without;
    const one = fc.record({ atMs: fc.nat(50), forMs: fc.double({ min: 0.5, max: 60, noNaN: true }), answeredAfterMs: fc.nat(80) });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 30 }), (waiters) => {
        const startMs = performance.now();
        const told = waiters.map((): number[] => []);
        const waiting: Waiter[] = [];
        for (let nowMs = 0; nowMs <= 150; nowMs++) {
          waiters.forEach(({ atMs, forMs, answeredAfterMs }, i) => {
            if (atMs === nowMs) {
              waiting[i] = waiter(forMs, () => void told[i]?.push(performance.now() - startMs));
              addWaiter(waiting[i]);
            }
            if (atMs + answeredAfterMs === nowMs) waiting[i]?.finish(undefined);
          });
          // Beside the timer there may be an immediate that lets pending data be read first.
          expect(vi.getTimerCount()).toBeLessThanOrEqual(2);
          vi.advanceTimersByTime(1);
        }
        waiters.forEach(({ atMs, forMs, answeredAfterMs }, i) => {
          const overMs = Math.ceil(atMs + forMs) + turnMs;
          expect(told[i]).toEqual(atMs + answeredAfterMs < overMs ? [] : [overMs]);
        });
        expect(vi.getTimerCount()).toBe(0);
      }),
      runs(100),
    );
  });

  test("the timer does not keep the process alive", () => {
    const { addWaiter, waiter } = runtimes.without;
    const timers = vi.spyOn(globalThis, "setTimeout");
    addWaiter(waiter(10));
    expect(timers.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())).toEqual([false]);
  });

  test("a deadline that has passed still leaves one millisecond", () => {
    const { msUntil, unblockedMs } = runtimes.without;
    const nowMs = unblockedMs();
    expect([msUntil(nowMs + 20), msUntil(nowMs), msUntil(nowMs - 20)]).toEqual([20, 1, 1]);
  });
});

describe.each(["with", "without"] as const)("in a busy process, %s `setImmediate`", (runtime) => {
  const timeoutMs = 100;
  const schedule = fc.record({
    /** Data that arrives at a time and blocks the loop for a while when it is read. */
    work: fc.array(fc.record({ atMs: fc.nat(400), forMs: fc.oneof(fc.nat(5), fc.nat(400)) }), { maxLength: 40 }),
    waiters: fc.array(fc.record({ atMs: fc.nat(400), answersAfterMs: fc.option(fc.nat(150), { nil: Number.POSITIVE_INFINITY }) }), {
      minLength: 1,
      maxLength: 30,
    }),
  });

  test("an answer that arrived in time counts, however late it is read; otherwise the waiter expires neither early nor late", () => {
    const { addWaiter, waiter } = runtimes[runtime];
    fc.assert(
      fc.property(schedule, ({ work, waiters }) => {
        loop = new FakeLoop();
        const startMs = loop.nowMs;
        const end: { how: string; waitedMs: number; stoodMs: number }[] = [];
        for (const { atMs, forMs } of work) loop.arrive(startMs + atMs, () => loop.block(forMs));
        waiters.forEach(({ atMs, answersAfterMs }, i) => {
          loop.arrive(startMs + atMs, () => {
            const [askedMs, stoodMs] = [loop.nowMs, loop.stoodMs];
            const done = (how: string): void => {
              expect(end[i]).toBeUndefined();
              end[i] = { how, waitedMs: loop.nowMs - askedMs, stoodMs: loop.stoodMs - stoodMs };
            };
            const one = waiter(timeoutMs, () => done("given up"));
            addWaiter(one);
            loop.arrive(askedMs + answersAfterMs, () => {
              if (end[i] !== undefined) return;
              one.finish(undefined);
              done("answered");
            });
          });
        });
        loop.run();
        waiters.forEach(({ answersAfterMs }, i) => {
          const { how, waitedMs, stoodMs } = end[i] as (typeof end)[number];
          if (answersAfterMs <= timeoutMs) expect(how).toBe("answered");
          if (how === "answered") return;
          expect(waitedMs).toBeGreaterThanOrEqual(timeoutMs);
          expect(waitedMs).toBeLessThanOrEqual(timeoutMs + stoodMs + 3);
        });
        vi.unstubAllGlobals();
      }),
      runs(300),
    );
  });

  test("a blocked loop extends a deadline by at most ten seconds", () => {
    const { addWaiter, waiter } = runtimes[runtime];
    loop = new FakeLoop();
    const startMs = loop.nowMs;
    let waitedMs = 0;
    addWaiter(
      waiter(timeoutMs, () => {
        waitedMs = loop.nowMs - startMs;
      }),
    );
    const keepBusy = (): void => {
      loop.block(300);
      if (waitedMs === 0) loop.arrive(loop.nowMs, keepBusy);
    };
    loop.arrive(startMs, () => loop.block(9_000));
    loop.arrive(startMs + 9_000, keepBusy);
    loop.run();
    expect(waitedMs).toBeGreaterThan(timeoutMs + 9_000);
    expect(waitedMs).toBeLessThanOrEqual(timeoutMs + 10_000 + 600);
  });

  test("in a blocked loop, the running clock stops near fifty milliseconds before the deadline, or after four if less are left", () => {
    const { addWaiter, msLeft, waiter } = runtimes[runtime];
    loop = new FakeLoop();
    const one = waiter(timeoutMs);
    addWaiter(one);
    loop.block(500);
    expect(msLeft(one)).toBe(48);
    one.deadlineMs += 10;
    expect(msLeft(one)).toBe(58);
    loop.run();
    loop = new FakeLoop();
    const short = waiter(20);
    addWaiter(short);
    loop.block(500);
    expect(msLeft(short)).toBe(16);
    loop.run();
  });
});
