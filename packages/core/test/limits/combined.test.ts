import fc from "fast-check";
import { expect, test } from "vitest";
import { variants } from "../../../conformance/src/store/algorithms.js";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { consumeAll, createLimiter, fixedWindow } from "../../src/index.js";

test("the combined decision is the most restrictive one: the longest wait among rejections, else the smallest remaining share", () => {
  const part = fc.record({
    kind: fc.constantFrom(...variants),
    quota: fc.integer({ min: 1, max: 9 }),
    used: fc.nat(9),
    cost: fc.integer({ min: 1, max: 4 }),
  });
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), (parts) => {
      const store = simpleStore(() => 1_789_948_800_000);
      const checks = parts.map(({ kind, quota, used, cost }, i) => {
        const limiter = createLimiter({ name: `limit ${i}`, policy: kind.of(quota, 1, kind.every), store });
        if (used > 0) limiter.consume("key", { cost: used });
        return { limiter, key: "key", cost };
      });
      const { allowed, decision, all } = consumeAll(checks);
      expect(all).toContain(decision);
      expect(decision.allowed).toBe(allowed);
      for (const other of all) {
        if (allowed) expect(decision.remaining / decision.limit).toBeLessThanOrEqual(other.remaining / other.limit);
        else if (!other.allowed) expect(decision.retryAfterMs).toBeGreaterThanOrEqual(other.retryAfterMs);
      }
    }),
  );
});

test("consumeAll refuses what is no list of checks, and charges nothing", () => {
  const policy = fixedWindow({ limit: 5, window: "1m" });
  const limiter = createLimiter({ name: "api", policy, store: simpleStore() });
  const good = { limiter, key: "key" };
  const refused = (given: unknown, message: string): void => {
    expect(() => consumeAll(given as never)).toThrow(
      expect.objectContaining({ name: "FloodgateError", message: expect.stringContaining(message) }),
    );
  };
  for (const given of [undefined, null, 5, "key", {}, good]) refused(given, "consumeAll takes an array of checks");
  refused([], "consumeAll takes at least one check. Write consumeAll([{ limiter, key }]).");
  for (const given of [undefined, null, 5, "key", [limiter]]) refused([good, given], "consumeAll takes an object of options");
  for (const given of [undefined, null, 5, {}, () => undefined, policy])
    refused([good, { limiter: given, key: "other" }], "`limiter` must be a limiter");
  refused([good, limiter], "consumeAll has no option");
  refused([good, { limiter, key: "other", cots: 3 }], "consumeAll has no option `cots`. Did you mean `cost`?");
  expect(limiter.peek("key").remaining).toBe(5);
  expect(consumeAll([good, { limiter, key: "other", cost: 3 }]).all.map(({ remaining }) => remaining)).toEqual([4, 2]);
});
