import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runs } from "../../../../test/runs.js";
import type { BreakerEvent, BreakerState } from "../../src/events/events.js";
import { Breakers, type Circuit, failedIn } from "../../src/failure/breaker.js";

const timeoutMs = 100;
/** The longest back-off before a probe. */
const longestPauseMs = 375;

let breakers: Breakers;
let events: BreakerEvent[];
beforeEach(() => {
  vi.useFakeTimers();
  // The part of a key is its first letter.
  breakers = new Breakers({ shardOf: (key) => key.charAt(0) });
  events = [];
  breakers.listen((event) => void (event.type === "breaker" && events.push(event)));
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Whether a call with these keys is made; if so, it ends like this. */
function call(keys: readonly string[], outcome: "answers" | "fails" | { failsIn: string } = "answers"): boolean {
  const circuit = breakers.of(keys.map((key) => ({ key })));
  const period = circuit.admits(timeoutMs);
  if (period === 0) return false;
  if (outcome === "answers") circuit.succeeded(period);
  else circuit.failed(period, outcome === "fails" ? new Error("lost") : failedIn(outcome.failsIn, new Error("lost")));
  return true;
}

function open(key: string): void {
  for (let i = 0; i < 5; i++) call([key], "fails");
}

describe("the breakers of a store with parts", () => {
  it("open for the keys of the part that fails, and for calls that need that part", () => {
    open("a1");
    expect([call(["a2"]), call(["b1"]), call(["b1", "c1"]), call(["a1", "b1"])]).toEqual([false, true, true, false]);
    expect(events).toEqual([{ type: "breaker", state: "open", part: "a" }]);
  });

  it("blame the part that an error names, and no other", () => {
    for (let i = 0; i < 5; i++) call(["a1", "b1"], { failsIn: "b" });
    expect([call(["a1"]), call(["b1"])]).toEqual([true, false]);
  });

  it("blame all parts for an error that names none", () => {
    for (let i = 0; i < 5; i++) call(["a1", "b1"], "fails");
    expect([call(["a1"]), call(["b1"])]).toEqual([false, false]);
  });

  it("do not use up a part's probe for a call that another part turns away", () => {
    open("a1");
    vi.advanceTimersByTime(longestPauseMs);
    open("b1");
    expect(call(["a1", "b1"])).toBe(false);
    expect(call(["a1"])).toBe(true);
  });

  const states = () => breakers.all().map(({ part, state }) => [part, state]);

  it("are each in a state of their own, and wait for the last one", () => {
    expect([states(), breakers.waitMs]).toEqual([[["", "closed"]], 0]);
    open("a1");
    call(["b1"]);
    expect(states().slice(1)).toEqual([
      ["a", "open"],
      ["b", "closed"],
    ]);
    expect(breakers.waitMs).toBeGreaterThan(0);
    vi.advanceTimersByTime(longestPauseMs);
    expect(call(["a1"])).toBe(true);
    expect(states().slice(1)).toEqual([
      ["a", "closed"],
      ["b", "closed"],
    ]);
    expect(breakers.waitMs).toBe(0);
  });

  it("forget a part that has left the store: it is failing, and nobody has asked for it in a minute", () => {
    open("a1");
    vi.advanceTimersByTime(longestPauseMs + 61_000);
    expect(states()).toEqual([["", "closed"]]);
    expect(events.at(-1)).toEqual({ type: "breaker", state: "closed", part: "a" });
  });

  it("forget only parts that work if a store has very many parts", () => {
    open("\u{1000}");
    for (let i = 0; i < 4; i++) call(["\u{1001}"], "fails");
    for (let i = 0; i < 1000; i++) call([String.fromCharCode(0x2000 + i)]);
    expect(breakers.all().length).toBeLessThan(110);
    call(["\u{1001}"], "fails");
    expect([call(["\u{1000}"]), call(["\u{1001}"])]).toEqual([false, false]);
  });

  it("leave a forgotten part closed, however its last calls end", () => {
    const last = Array.from({ length: 5 }, () => {
      const circuit = breakers.of({ key: "a" });
      return [circuit, circuit.admits(timeoutMs)] as const;
    });
    for (let i = 0; i < 100; i++) call([String.fromCharCode(0x2000 + i)]);
    for (const [circuit, period] of last) circuit.failed(period);
    expect(events).toEqual([]);
  });

  it("admit and count calls of one or several parts as a model does", () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    const keys = fc.uniqueArray(fc.constantFrom("a", "b", "c"), { minLength: 1 });
    const outcome = fc.constantFrom("answers", "fails", "fails", "fails in its first part", "is not used", "waits");
    const step = fc.oneof({ weight: 9, arbitrary: fc.tuple(keys, outcome) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 400 }) });
    fc.assert(
      fc.property(fc.array(fc.oneof(step, fc.constant("ends the oldest" as const)), { maxLength: 60, size: "max" }), (steps) => {
        breakers = new Breakers({ shardOf: (key) => key });
        const models = new Map(["a", "b", "c"].map((part) => [part, new Model()]));
        const inFlight: (() => void)[] = [];
        for (const step of steps) {
          if (typeof step === "number") vi.advanceTimersByTime(step);
          else if (step === "ends the oldest") inFlight.shift()?.();
          else {
            const [keys, outcome] = step;
            const parts = keys.map((key) => models.get(key) as Model);
            const checks = keys.map((key) => ({ key }));
            const circuit: Circuit = breakers.of(checks.length > 1 ? checks : (checks[0] as { key: string }));
            const period = circuit.admits(timeoutMs);
            const isAdmitted = parts.every((part) => part.isReady);
            expect(period !== 0).toBe(isAdmitted);
            if (!isAdmitted) continue;
            const periods = parts.map((part) => part.admit());
            const end = (how: typeof outcome): void => {
              const error = new Error("lost");
              if (how === "answers") circuit.succeeded(period);
              else if (how === "is not used") circuit.unused(period);
              else circuit.failed(period, how === "fails" ? error : failedIn(keys[0] as string, error));
              parts.forEach((part, i) => {
                const counts = how !== "fails in its first part" || i === 0;
                if (counts && part.period === periods[i]) part.end(how === "answers" ? "s" : how === "is not used" ? undefined : "f");
              });
            };
            if (outcome === "waits")
              inFlight.push(
                () => end("fails"),
                () => end("answers"),
              );
            else end(outcome);
          }
          for (const { part, state, waitMs } of breakers.all().slice(1)) {
            const { state: expected, probeAtMs } = models.get(part) as Model;
            const wait = expected === "closed" ? 0 : Math.max(1, probeAtMs - performance.now());
            expect([part, state, waitMs]).toEqual([part, expected, wait]);
          }
        }
      }),
      runs(800),
    );
  });
});

/** A breaker whose pause is always 300 ms. */
class Model {
  state: BreakerState = "closed";
  period = 0;
  probeAtMs = 0;
  outcomes = "";

  get isReady(): boolean {
    return this.state === "closed" || performance.now() >= this.probeAtMs;
  }

  /** Returns the period of a call that is made. */
  admit(): number {
    if (this.state !== "closed") this.#become("half-open", timeoutMs + 300);
    return this.period;
  }

  end(outcome: "s" | "f" | undefined): void {
    if (outcome === undefined) {
      if (this.state === "half-open") this.probeAtMs = performance.now();
      return;
    }
    this.outcomes = (this.outcomes + outcome).slice(-20);
    const isDown = this.state !== "closed" || this.outcomes.endsWith("fffff") || this.outcomes.split("f").length > 10;
    if (outcome === "f" && isDown) this.#become("open", 300);
    else if (outcome === "s" && this.state !== "closed") this.#become("closed", 0);
  }

  #become(state: BreakerState, pauseMs: number): void {
    this.state = state;
    this.period++;
    this.outcomes = "";
    this.probeAtMs = performance.now() + pauseMs;
  }
}
