import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { createLimiter, type FloodgateEvent, fixedWindow, type Limiter } from "../../src/index.js";
import { type Fault, FaultyStore } from "../faulty-store.js";

// The clock stands still, so that no window ends within a test.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

let events: FloodgateEvent[];
let tokens: Limiter<"sync">;
beforeEach(() => {
  events = [];
  tokens = createLimiter({
    name: "tokens",
    policy: fixedWindow({ limit: 1000, window: "1d" }),
    store: simpleStore(),
    onEvent: (event) => event.type !== "request" && events.push(event),
  });
});

const settlements = () => events.filter(({ type }) => type !== "allowed");

test.each([
  [800, 300],
  [200, -300],
  [0, -500],
])("a real cost of %d where 500 were reserved changes the charge by %d, and is an event", (cost, units) => {
  const decision = tokens.consume("user", { cost: 500 });
  expect(tokens.settle("user", decision, cost)).toBe(units);
  expect(settlements()).toEqual([{ type: "settled", name: "tokens", key: "user", cost, units, decision }]);
});

test("settling to the reserved cost changes nothing and emits no event", () => {
  const decision = tokens.consume("user", { cost: 500 });
  expect([tokens.settle("user", decision, 500), tokens.settle("user", decision, 800)]).toEqual([0, 0]);
  expect([tokens.peek("user").remaining, settlements()]).toEqual([500, []]);
});

test("a refund emits refunded, not settled", () => {
  const decision = tokens.consume("user", { cost: 500 });
  expect(tokens.refund("user", decision)).toBe(500);
  expect(settlements()).toEqual([{ type: "refunded", name: "tokens", key: "user", units: 500, decision }]);
});

test("settling nothing returns like any other call: a value or a promise, by the store's mode", async () => {
  const later = createLimiter({ name: "tokens", policy: tokens.policy, store: new FaultyStore(simpleStore()) });
  for (const [of, expected] of [
    [tokens, 0],
    [later, expect.any(Promise)],
  ] as const) {
    const decision = await of.peek("user");
    expect([of.refund("user", decision), of.settle("user", decision, 800)]).toEqual([expected, expected]);
  }
});

test.each<Fault>(["rejects", "throws", "answers late"])(
  "a settlement that failed because the store %s is not retried, because it may have been made",
  async (fault) => {
    const store = new FaultyStore(simpleStore());
    const later = createLimiter({ name: "tokens", policy: tokens.policy, store, timeoutMs: 5 });
    const decision = await later.consume("user", { cost: 500 });
    store.fault = fault;
    const failure = await (async () => await later.settle("user", decision, 800))().catch((error: unknown) => error);
    store.fault = undefined;
    const { asked } = store;
    for (const again of [() => later.settle("user", decision, 800), () => later.refund("user", decision)]) {
      await expect(again()).rejects.toThrow(
        expect.objectContaining({
          code: "FLOODGATE_STORE_FAULT",
          message: expect.stringMatching(/"tokens" has failed, but the store may have made it/),
          cause: failure,
        }),
      );
    }
    expect(store.asked).toBe(asked);
  },
);

describe("invalid arguments are errors, and the decision can still be settled:", () => {
  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "800", undefined, 8n])("a real cost of %s", (cost) => {
    const decision = tokens.consume("user");
    expect(() => tokens.settle("user", decision, cost as number)).toThrow(
      expect.objectContaining({
        code: "FLOODGATE_INVALID_COST",
        message: expect.stringMatching(
          /^A real cost must be a whole number of at least 0(?: and below 2\^53)?, but was .+\. Write 1200, for example/,
        ),
      }),
    );
    expect(tokens.settle("user", decision, 800)).toBe(799);
  });

  it("a decision of another limiter", () => {
    const other = createLimiter({ name: "requests", policy: tokens.policy, store: simpleStore() });
    const decision = tokens.consume("user");
    for (const change of [() => other.settle("user", decision, 800), () => other.refund("user", decision)]) {
      expect(change).toThrow(
        expect.objectContaining({ code: "FLOODGATE_FOREIGN_CHARGE", message: expect.stringMatching(/"requests" .* "tokens"/) }),
      );
    }
    expect(tokens.settle("user", decision, 800)).toBe(799);
  });
});
