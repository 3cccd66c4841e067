import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import {
  concurrency,
  consumeAll,
  createLimiter,
  type Decision,
  type FloodgateEvent,
  fixedWindow,
  type Limiter,
  leakyBucket,
  type Policy,
  tokenBucket,
} from "../../src/index.js";
import { createLimit, heldPolicy } from "../../src/store.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ten = tokenBucket({ capacity: 10, refill: 1, every: "365d" });
const slots = concurrency({ limit: 2, hold: "30s" });
const limiterOf = (policy: Policy = slots, more: object = {}) => createLimiter({ name: "api", policy, store: simpleStore(), ...more });

/** Work that ends when it is told to. */
function work() {
  let end: () => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    end = () => resolve("done");
  });
  return { run: () => ended, end };
}

describe("run", () => {
  it("runs as many at once as the limit says, and rejects the others without an error", async () => {
    const limiter = limiterOf();
    const [first, second] = [work(), work()];
    const running = [limiter.run("k", first.run), limiter.run("k", second.run)];
    expect(await limiter.run("k", () => expect.unreachable())).toMatchObject({ allowed: false, decision: { remaining: 0 } });
    first.end();
    expect(await running[0]).toMatchObject({ allowed: true, value: "done" });
    expect(await limiter.run("k", () => "next")).toMatchObject({ allowed: true, decision: { allowed: true, cost: 1 }, value: "next" });
    second.end();
    await running[1];
    expect(limiter.peek("k").remaining).toBe(2);
  });

  it("gives the slot back if the work throws, and takes none if the signal is aborted before", async () => {
    const limiter = limiterOf();
    await expect(limiter.run("k", () => Promise.reject(new Error("work")))).rejects.toThrow("work");
    await expect(limiter.run("k", () => expect.unreachable(), { signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
    expect(limiter.peek("k").remaining).toBe(2);
  });

  it("renews the slot while the work runs, and starts no timer that outlives it", async () => {
    const limiter = limiterOf();
    const long = work();
    const running = limiter.run("k", long.run);
    await vi.advanceTimersByTimeAsync(300_000);
    expect(limiter.peek("k").remaining).toBe(1);
    expect(vi.getTimerCount()).toBe(1);
    long.end();
    await running;
    expect([limiter.peek("k").remaining, vi.getTimerCount()]).toEqual([2, 0]);
  });

  it("under a limiter with `hold` charges the units when the work ends, and gives them back if it throws", async () => {
    const limiter = limiterOf(ten, { hold: "1m" });
    await limiter.run("k", () => expect(limiter.keyState("k").states[0].state).toMatchObject({ kind: "held", total: 4 }), { cost: 4 });
    await limiter.run("k", () => Promise.reject(new Error("work")), { cost: 6 }).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(limiter.peek("k").remaining).toBe(6);
  });

  it("is refused for a limit that gives nothing back", async () => {
    await expect(limiterOf(ten).run("k", work().run)).rejects.toMatchObject({
      code: "FLOODGATE_INVALID_OPTION",
    });
  });
});

describe("a process that was stopped for longer than the hold", () => {
  const paused = async (takenBy: number) => {
    const events: FloodgateEvent[] = [];
    const limiter = limiterOf(slots, { onEvent: (event: FloodgateEvent) => event.type === "slot-lost" && events.push(event) });
    const long = work();
    const running = limiter.run("k", long.run);
    // The clock of the store goes on, and the timers of this process do not.
    vi.setSystemTime(Date.now() + 31_000);
    for (let i = 0; i < takenBy; i++) limiter.consume("k");
    await vi.advanceTimersByTimeAsync(10_000);
    const { remaining } = limiter.peek("k");
    long.end();
    await running;
    return { events, remaining, after: limiter.peek("k").remaining };
  };

  it("takes a lost slot again if the limit has room, and emits slot-lost with counted: true", async () => {
    expect(await paused(1)).toMatchObject({ events: [{ type: "slot-lost", counted: true }], remaining: 0, after: 1 });
  });

  it("keeps running without a slot if the limit is full, emits slot-lost with counted: false, and frees nobody else's slot", async () => {
    expect(await paused(2)).toMatchObject({ events: [{ type: "slot-lost", counted: false }], remaining: 0, after: 0 });
  });
});

describe("hold", () => {
  const held = (more: object = {}) => limiterOf(ten, { hold: "1m", ...more });

  it("sets units aside, and settle charges the real cost in their place, into debt if it is more", () => {
    const limiter = held();
    const decision = limiter.consume("k", { cost: 8 });
    expect([decision.heldUntilMs, limiter.peek("k").remaining]).toEqual([Date.now() + 60_000, 2]);
    expect([limiter.settle("k", decision, 3), limiter.peek("k").remaining]).toEqual([-5, 7]);
    expect(limiter.settle("k", limiter.consume("k", { cost: 7 }), 15)).toBe(8);
    expect(limiter.keyState("k").states[0].state).toMatchObject({ kind: "bucket", level: expect.closeTo(-8) });
  });

  it("of a request may be shorter than the limiter's, and no longer", () => {
    const limiter = held();
    expect(limiter.consume("k", { hold: "10s" }).heldUntilMs).toBe(Date.now() + 10_000);
    expect(() => limiter.consume("k", { hold: "2m" })).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_OPTION" }));
    const plain = limiterOf(ten);
    expect(() => plain.consume("k", { hold: "10s" })).toThrow('Write createLimiter({ name: "api", policy, store, hold: "10s" }).');
  });

  it("of one of several limits is set aside with the others in one step", () => {
    const store = simpleStore();
    const limiters = ["tokens", "dollars", "requests"].map((name) =>
      createLimiter({ name, policy: ten, store, ...(name === "requests" ? {} : { hold: "1m" }) }),
    );
    const [tokens, dollars, requests] = limiters as [Limiter<"sync">, Limiter<"sync">, Limiter<"sync">];
    const both = [
      { limiter: tokens, key: "k", cost: 8, hold: "10s" },
      { limiter: dollars, key: "k", cost: 5 },
    ] as const;
    const { allowed, all } = consumeAll([...both, { limiter: requests, key: "k" }]);
    expect([allowed, ...all.map(({ heldUntilMs }) => heldUntilMs && heldUntilMs - Date.now())]).toEqual([true, 10_000, 60_000, undefined]);
    expect(consumeAll(both).allowed).toBe(false);
    expect([tokens.settle("k", all[0] as Decision, 3), tokens.peek("k").remaining, dollars.peek("k").remaining]).toEqual([-5, 7, 5]);
    expect(() => consumeAll([{ limiter: requests, key: "k", hold: "10s" }])).toThrow("consumeAll: `hold` was given");
  });

  it.each([
    ["concurrency", slots],
    ["leakyBucket", leakyBucket({ capacity: 5, leak: 1, every: "1s" })],
  ])("is refused for %s, with what to write", (_, policy) => {
    expect(() => limiterOf(policy, { hold: "1m" })).toThrow(
      expect.objectContaining({ code: "FLOODGATE_CONFLICTING_OPTIONS", at: ["hold"] }),
    );
  });

  it("makes a limit that no lease may charge ahead", () => {
    expect(() => held({ lease: true })).toThrow(expect.objectContaining({ code: "FLOODGATE_CONFLICTING_OPTIONS" }));
  });
});

it("a key holds the units of ten thousand requests at once, and of the next one when the first of them have come back", async () => {
  const limit = createLimit("api", heldPolicy("test", fixedWindow({ limit: 20_000, window: "365d" }), 60_000));
  let nowMs = 1_789_948_800_000;
  const store = simpleStore(() => nowMs);
  const ask = (holdMs: number) => store.consume({ ...limit, holdMs }, "key", 1);
  for (let i = 0; i < 9_999; i++) expect(ask(50_001 + i).allowed).toBe(true);
  expect(ask(60_000)).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 50_001 });
  expect(ask(60_000)).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 50_001 });
  expect(ask(0).allowed).toBe(true);
  nowMs += 50_001;
  expect([ask(20_000).allowed, ask(30_000).allowed]).toEqual([true, false]);
});
