import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { BreakerEvent } from "../../src/events/events.js";
import { Breakers, failedIn } from "../../src/failure/breaker.js";

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

  it("keep a failing part if a store has very many parts", () => {
    open("\u{1000}");
    for (let i = 0; i < 1000; i++) call([String.fromCharCode(0x2000 + i)]);
    expect(call(["\u{1000}"])).toBe(false);
  });
});
