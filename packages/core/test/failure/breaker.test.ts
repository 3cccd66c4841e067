import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { expectWarnings } from "../../../../test/expected-warnings.js";
import { runs } from "../../../../test/runs.js";
import { Breaker, breakersOf, OutageReport } from "../../src/failure/breaker.js";
import type { FloodgateEvent, Store } from "../../src/index.js";

expectWarnings("FLOODGATE_STORE_DOWN", "FLOODGATE_STORE_BACK", "onEvent: a listener has failed");

const timeoutMs = 100;
/** The longest back-off before a probe. */
const longestPauseMs = 375;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const reports = new WeakMap<Breaker, OutageReport>();

function made(): Breaker {
  const report = new OutageReport();
  const breaker = new Breaker("", report);
  reports.set(breaker, report);
  return breaker;
}

const report = (breaker: Breaker): OutageReport => reports.get(breaker) as OutageReport;

function fail(breaker: Breaker, times = 1): void {
  for (let i = 0; i < times; i++) breaker.failed(breaker.admits(timeoutMs));
}

/** An open breaker whose back-off has just ended. */
function due(): Breaker {
  const breaker = made();
  fail(breaker, 5);
  vi.advanceTimersByTime(longestPauseMs);
  return breaker;
}

const admits = (breaker: Breaker): boolean => breaker.admits(timeoutMs) !== 0;

describe("a breaker", () => {
  it("opens after five faults in a row", () => {
    const breaker = made();
    fail(breaker, 4);
    breaker.succeeded(breaker.admits(timeoutMs));
    fail(breaker, 4);
    expect([admits(breaker), breaker.waitMs]).toEqual([true, 0]);
    fail(breaker);
    expect(admits(breaker)).toBe(false);
  });

  it("opens after ten faults in twenty calls", () => {
    const breaker = made();
    const calls = (outcomes: string): void => {
      for (const outcome of outcomes) {
        if (outcome === "f") fail(breaker);
        else breaker.succeeded(breaker.admits(timeoutMs));
      }
    };
    // Nine faults in the last twenty calls, again and again.
    calls("fsffssfssfsfssfsffss".repeat(100));
    expect(admits(breaker)).toBe(true);
    calls("fsfsfsfsfsfsfsfsfsf");
    expect(admits(breaker)).toBe(false);
  });

  it("waits 225 to 375 ms before it probes, so that processes do not probe all at once", () => {
    for (const [random, pauseMs] of [
      [0, 225],
      [0.5, 300],
      [1 - Number.EPSILON, 375],
    ] as const) {
      vi.spyOn(Math, "random").mockReturnValue(random);
      const breaker = made();
      fail(breaker, 5);
      expect(breaker.waitMs).toBe(pauseMs);
      vi.advanceTimersByTime(pauseMs - 1);
      expect([admits(breaker), breaker.waitMs]).toEqual([false, 1]);
      vi.advanceTimersByTime(1);
      expect(admits(breaker)).toBe(true);
    }
  });

  it("admits exactly one probe when half-open, and closes if it succeeds", () => {
    const breaker = due();
    const period = breaker.admits(timeoutMs);
    expect(period).not.toBe(0);
    expect([admits(breaker), admits(breaker)]).toEqual([false, false]);
    breaker.succeeded(period);
    expect([admits(breaker), breaker.waitMs]).toEqual([true, 0]);
    fail(breaker, 4);
    expect(admits(breaker)).toBe(true);
  });

  it("opens again if the probe fails", () => {
    const breaker = due();
    fail(breaker);
    expect(admits(breaker)).toBe(false);
    vi.advanceTimersByTime(longestPauseMs);
    expect(admits(breaker)).toBe(true);
  });

  it("gives up a probe without an answer, and ignores its late answer", () => {
    const breaker = due();
    const lost = breaker.admits(timeoutMs);
    vi.advanceTimersByTime(timeoutMs);
    expect(admits(breaker)).toBe(false);
    vi.advanceTimersByTime(longestPauseMs);
    const next = breaker.admits(timeoutMs);
    breaker.succeeded(lost);
    expect([next !== 0, admits(breaker)]).toEqual([true, false]);
    breaker.succeeded(next);
    expect(admits(breaker)).toBe(true);
  });

  it("ignores answers to calls from before it opened", () => {
    const breaker = made();
    const before = breaker.admits(timeoutMs);
    fail(breaker, 5);
    breaker.succeeded(before);
    expect(admits(breaker)).toBe(false);
    vi.advanceTimersByTime(longestPauseMs);
    const period = breaker.admits(timeoutMs);
    breaker.succeeded(before);
    breaker.failed(before);
    expect(admits(breaker)).toBe(false);
    breaker.succeeded(period);
    for (let i = 0; i < 5; i++) breaker.failed(before);
    expect(admits(breaker)).toBe(true);
  });

  it("notifies each listener once per change", () => {
    const breaker = made();
    const [one, other]: [FloodgateEvent[], FloodgateEvent[]] = [[], []];
    const listener = (event: FloodgateEvent): void => void one.push(event);
    report(breaker).listen(listener);
    report(breaker).listen(listener);
    report(breaker).listen((event) => other.push(event));
    fail(breaker, 5);
    vi.advanceTimersByTime(longestPauseMs);
    fail(breaker);
    vi.advanceTimersByTime(longestPauseMs);
    breaker.succeeded(breaker.admits(timeoutMs));
    const states = ["open", "half-open", "open", "half-open", "closed"];
    expect(one).toEqual(states.map((state) => ({ type: "breaker", state })));
    expect(other).toEqual(one);
  });

  it("stops notifying removed listeners; a listener added twice must be removed twice", () => {
    const breaker = made();
    const heard: string[] = [];
    const twice = (): void => void heard.push("twice");
    const stops = [report(breaker).listen(twice), report(breaker).listen(twice), report(breaker).listen(() => heard.push("once"))];
    for (const stop of [stops[0], stops[2], stops[0]]) stop?.();
    fail(breaker, 5);
    expect(heard).toEqual(["twice"]);
  });

  it("notifies other listeners when one throws, and does not fail calls", () => {
    const breaker = made();
    const heard: FloodgateEvent[] = [];
    report(breaker).listen(() => {
      throw new Error("listener");
    });
    report(breaker).listen((event) => event.type !== "request" && heard.push(event));
    fail(breaker, 5);
    vi.advanceTimersByTime(longestPauseMs);
    breaker.succeeded(breaker.admits(timeoutMs));
    expect(heard).toEqual(["open", "half-open", "closed"].map((state) => ({ type: "breaker", state })));
  });

  describe("logs", () => {
    const told = (): string[] =>
      vi.mocked(console.warn).mock.calls.map(([message]) => /^\[floodgate\] FLOODGATE_STORE_(\w+): /.exec(message)?.[1] ?? message);
    const reopen = (breaker: Breaker): void => {
      vi.advanceTimersByTime(longestPauseMs);
      fail(breaker);
    };
    const close = (breaker: Breaker): void => {
      vi.advanceTimersByTime(longestPauseMs);
      breaker.succeeded(breaker.admits(timeoutMs));
    };
    beforeEach(() => {
      vi.spyOn(console, "warn").mockImplementation(() => undefined);
    });

    it("an outage once, however many probes fail, and its end once", () => {
      const breaker = made();
      fail(breaker, 5);
      for (let i = 0; i < 1000; i++) reopen(breaker);
      expect(told()).toEqual(["DOWN"]);
      close(breaker);
      expect(told()).toEqual(["DOWN", "BACK"]);
    });

    it("at most one outage a minute, with its end, if the store comes and goes", () => {
      const breaker = made();
      for (let i = 0; i < 10; i++) {
        fail(breaker, 5);
        close(breaker);
      }
      expect(told()).toEqual(["DOWN", "BACK"]);
      vi.advanceTimersByTime(60_000);
      fail(breaker, 5);
      close(breaker);
      expect(told()).toEqual(["DOWN", "BACK", "DOWN", "BACK"]);
    });

    it("an outage that began soon after another, once the minute is over", () => {
      const breaker = made();
      fail(breaker, 5);
      close(breaker);
      fail(breaker, 5);
      reopen(breaker);
      expect(told()).toEqual(["DOWN", "BACK"]);
      vi.advanceTimersByTime(60_000);
      fail(breaker);
      expect(told()).toEqual(["DOWN", "BACK", "DOWN"]);
    });

    it("nothing while there is a listener", () => {
      const breaker = made();
      report(breaker).listen(() => undefined);
      fail(breaker, 5);
      close(breaker);
      expect(told()).toEqual([]);
    });

    it("an outage that continues after the last listener has left", () => {
      const breaker = made();
      const stop = report(breaker).listen(() => undefined);
      fail(breaker, 5);
      stop();
      reopen(breaker);
      expect(told()).toEqual(["DOWN"]);
    });

    it("the end of a logged outage even if there is a listener by then, and the next outage", () => {
      const breaker = made();
      fail(breaker, 5);
      const stop = report(breaker).listen(() => undefined);
      close(breaker);
      expect(told()).toEqual(["DOWN", "BACK"]);
      stop();
      vi.advanceTimersByTime(60_000);
      fail(breaker, 5);
      expect(told()).toEqual(["DOWN", "BACK", "DOWN"]);
    });
  });

  it("is shared by all callers of a store and by stores that share counts, and separate for other stores", () => {
    const scope = {};
    const [a, b, one, other] = [{}, {}, { scope }, { scope }] as [Store, Store, Store, Store];
    expect(breakersOf(a)).toBe(breakersOf(a));
    expect(breakersOf(a)).not.toBe(breakersOf(b));
    expect(breakersOf(one)).toBe(breakersOf(other));
  });

  it("always probes again within one timeout and one back-off, and reports when", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("ask" as const) }),
      fc.record({ kind: fc.constantFrom("succeeded" as const, "failed" as const), which: fc.nat(7) }),
      fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(500) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) => {
        const breaker = made();
        let state = "closed";
        report(breaker).listen((event) => {
          if (event.type === "breaker") state = event.state;
        });
        const underWay: number[] = [];
        for (const step of steps) {
          const { waitMs } = breaker;
          if (step.kind === "wait") {
            vi.advanceTimersByTime(step.ms);
          } else if (step.kind === "ask") {
            const period = breaker.admits(timeoutMs);
            if (period === 0) expect(waitMs).toBeGreaterThan(0);
            else underWay.push(period);
          } else {
            const [period] = underWay.splice(step.which, 1);
            if (period !== undefined) breaker[step.kind](period);
          }
          expect(breaker.waitMs > 0).toBe(state !== "closed");
          expect(breaker.waitMs).toBeLessThanOrEqual(timeoutMs + longestPauseMs);
        }
        const { waitMs } = breaker;
        vi.advanceTimersByTime(waitMs);
        expect(admits(breaker)).toBe(true);
      }),
      runs(500),
    );
  });
});
