import type { RuleSource } from "@floodgate/core";
import type { PlainRule, RuleSet, RuleUser } from "@floodgate/core/rules";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../../../test/runs.js";
import { Operations } from "../../src/api/operations.js";
import { PendingLimit } from "../../src/service/limit.js";
import { gatewayReader } from "../../src/service/request.js";
import type { Service } from "../../src/service/service.js";

/** Counts under another window are other counts. */
const rule = fc.record({ name: fc.constantFrom("a", "b", "c"), limit: fc.integer({ min: 3, max: 9 }), days: fc.constantFrom(100, 365) });
const sets = fc.uniqueArray(rule, { selector: ({ name }) => name, minLength: 1, maxLength: 3 });
const check = fc.record({ rule: fc.constantFrom("a", "b", "c"), key: fc.constantFrom("ann", "bob"), cost: fc.integer({ min: 1, max: 3 }) });
const step = fc.record({
  does: fc.constantFrom("checks", "checks", "settles", "refunds", "reloads"),
  checks: fc.uniqueArray(check, { selector: ({ rule }) => rule, minLength: 1, maxLength: 3 }),
  which: fc.nat(5),
  cost: fc.nat(5),
  rules: sets,
});

type Rules = readonly { readonly name: string; readonly limit: number; readonly days: number }[];

/** A charge of a receipt. */
interface Part {
  readonly rule: string;
  readonly days: number;
  readonly count: string;
  readonly cost: number;
  isUsed: boolean;
}

function setOf(rules: Rules): RuleSet {
  return {
    rules: rules.map(
      ({ name, limit, days }): PlainRule => ({
        name,
        key: "global",
        policy: { algorithm: "fixed-window", limit, window: days * 86_400_000 },
      }),
    ),
  };
}

it("a receipt changes each of its charges once, as soon as its rule is in force, whatever happens to the rules", async () => {
  await fc.assert(
    fc.asyncProperty(sets, fc.array(step, { minLength: 1, maxLength: 30, size: "max" }), async (first, steps) => {
      const users: RuleUser[] = [];
      const subscribe = (user: RuleUser): (() => void) => {
        users.push(user);
        return () => undefined;
      };
      const source: RuleSource = { current: setOf(first), subscribe };
      const store = memoryStore({ maxKeys: 1000, clock: () => 1e12 });
      const limit = new PendingLimit({ store, receiptSecret: "0123456789".repeat(4) }, gatewayReader);
      limit.start(source, () => undefined);
      const api = new Operations({ limit, redis: undefined } as Service);
      let rules: Rules = first;
      const used = new Map<string, number>();
      const receipts: { readonly text: string; readonly parts: readonly Part[] }[] = [];
      const add = (count: string, units: number): void => void used.set(count, (used.get(count) ?? 0) + units);
      for (const { does, checks, which, cost, rules: next } of steps) {
        if (does === "reloads") {
          for (const activate of users.map(({ prepare }) => prepare(setOf(next)))) activate();
          rules = next;
        } else if (does === "checks") {
          const named = checks.filter((one) => rules.some(({ name }) => name === one.rule));
          if (named.length === 0) continue;
          const { allowed, receipt } = (await api.check({ checks: named })).value as { allowed: boolean; receipt: string };
          const parts = named.map(({ rule, key, cost }): Part & { limit: number } => {
            const { days, limit } = rules.find(({ name }) => name === rule) as Rules[number];
            return { rule, days, count: `${rule} ${days} ${key}`, cost, limit, isUsed: false };
          });
          expect(allowed).toBe(parts.every(({ count, cost, limit }) => (used.get(count) ?? 0) + cost <= limit));
          if (!allowed) continue;
          for (const { count, cost } of parts) add(count, cost);
          receipts.push({ text: receipt, parts });
        } else {
          const receipt = receipts[which % Math.max(1, receipts.length)];
          if (receipt === undefined) continue;
          const inForce = receipt.parts.filter(({ rule, days }) => rules.some((one) => one.name === rule && one.days === days));
          const real = does === "settles" ? cost : 0;
          const changed = does === "settles" ? api.settle({ receipt: receipt.text, cost }) : api.refund({ receipt: receipt.text });
          if (inForce.length === 0) {
            await expect(changed).rejects.toThrow(/no rule|invalid receipt/);
            continue;
          }
          expect((await changed).value).toEqual({
            units: inForce.map(({ rule, cost, isUsed }) => ({ rule, units: isUsed ? 0 : real - cost })),
          });
          for (const part of inForce) {
            if (!part.isUsed) add(part.count, real - part.cost);
            part.isUsed = true;
          }
        }
      }
      limit.close();
    }),
    runs(300),
  );
});

it("a fault of the store is told, also if another rule of the receipt is no longer in force", async () => {
  const receipt = `fb1.${Buffer.from(
    JSON.stringify([
      ["gone", "ann", "fr1.x.y"],
      ["slots", "ann", "fr1.x.y"],
    ]),
  ).toString("base64url")}`;
  const fault = Object.assign(new Error("down"), { code: "FLOODGATE_STORE_FAULT" });
  const limiters = new Map([["slots", { refund: () => Promise.reject(fault) }]]);
  const api = new Operations({ limit: { limiters }, redis: undefined } as unknown as Service);
  await expect(api.refund({ receipt })).rejects.toBe(fault);
});
