import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { createLimiter, type FloodgateEvent, fixedWindow } from "../../src/index.js";

// The clock stands still, so that no window ends within a test.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

const policy = fixedWindow({ limit: 10, window: "1m" });
const [secret, other] = ["the first secret of these tests, for signing", "another secret of these tests, for rotation"];
let nowMs = 1_789_948_800_000;

describe("a receipt", () => {
  it("is URL-safe, and refunds its decision once", () => {
    const events: FloodgateEvent[] = [];
    const onEvent = (event: FloodgateEvent) => void (event.type !== "request" && events.push(event));
    const api = createLimiter({ name: "api", policy, store: simpleStore(), receiptSecret: secret, onEvent });
    const decision = api.consume("k", { cost: 4 });
    const receipt = api.receipt(decision);
    expect(receipt).toMatch(/^[A-Za-z0-9._-]+$/);
    expect([api.refund("k", receipt), api.refund("k", receipt), api.refund("k", decision)]).toEqual([4, 0, 0]);
    expect(events.at(-1)).toEqual({ type: "refunded", name: "api", key: "k", units: 4, decision: undefined });
  });

  it("refunds nothing for a decision that charged nothing or was already settled", () => {
    const api = createLimiter({ name: "api", policy, store: simpleStore(), receiptSecret: secret });
    const settled = api.consume("k", { cost: 10 });
    const rejected = api.consume("k");
    expect(api.settle("k", settled, 5)).toBe(-5);
    for (const decision of [settled, rejected, api.peek("k")]) expect(api.settle("k", api.receipt(decision), 9)).toBe(0);
    expect(api.peek("k").remaining).toBe(5);
  });

  it("is valid while its secret is among the configured secrets", () => {
    const store = simpleStore();
    const limiter = (receiptSecret: string | string[]) => createLimiter({ name: "api", policy, store, receiptSecret });
    const receipt = limiter(secret).receipt(limiter(secret).consume("k"));
    expect(() => limiter(other).refund("k", receipt)).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_RECEIPT" }));
    expect(limiter([other, secret]).refund("k", receipt)).toBe(1);
  });

  it("expires after an hour, or after two spans of its policy if that is longer", () => {
    const store = simpleStore(() => nowMs);
    for (const [window, hours] of [
      ["1m", 1],
      ["2h", 4],
    ] as const) {
      const tokens = createLimiter({
        name: `tokens ${window}`,
        policy: { algorithm: "token-bucket", capacity: 10, refill: 10, every: window },
        store,
        receiptSecret: secret,
      });
      const receipts = [tokens.receipt(tokens.consume("k")), tokens.receipt(tokens.consume("k"))] as const;
      nowMs += hours * 3_600_000 - 1;
      expect(tokens.settle("k", receipts[0], 3)).toBe(2);
      nowMs += 1;
      expect(tokens.settle("k", receipts[1], 3)).toBe(0);
    }
  });

  it("requires receiptSecret", () => {
    const api = createLimiter({ name: "api", policy, store: simpleStore() });
    const decision = api.consume("k");
    expect(() => api.receipt(decision)).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_OPTION" }));
    expect(() => api.refund("k", "fr1.n.0")).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_RECEIPT" }));
  });

  it.each(["short", 42, [], [secret, "short"], null, undefined])("rejects the secret %j", (receiptSecret) => {
    const make = () => createLimiter({ name: "api", policy, store: simpleStore(), receiptSecret: receiptSecret as never });
    expect(make).toThrow(
      expect.objectContaining({ code: "FLOODGATE_INVALID_OPTION", message: expect.not.stringMatching(/"short"|the first secret/) }),
    );
  });
});
