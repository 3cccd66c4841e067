import * as fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../../test/runs.js";
import { NewestMap } from "../../src/support/maps.js";

const steps = fc.array(fc.record({ what: fc.constantFrom("set", "set", "set", "delete"), key: fc.nat(30) }), {
  maxLength: 150,
  size: "max",
});

test("a map of the newest keys remembers at least as many as it was told, at most twice as many, and the newest value of each", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 }), steps, (count, list) => {
      const newest = new NewestMap<number>(count);
      /** All values, undefined for a deleted one, in the order in which they were last changed. */
      const all = new Map<string, number | undefined>();
      list.forEach(({ what, key: number }, i) => {
        const key = `${number}`;
        const value = what === "delete" ? undefined : i;
        all.delete(key);
        all.set(key, value);
        if (value === undefined) newest.delete(key);
        else newest.set(key, value);
        const kept = [...all].reverse();
        for (const [k, last] of kept.slice(0, count)) expect(newest.get(k)).toBe(last);
        expect(kept.every(([k, last]) => [last, undefined].includes(newest.get(k)))).toBe(true);
        expect(kept.filter(([k]) => newest.get(k) !== undefined).length).toBeLessThanOrEqual(2 * count);
      });
    }),
    runs(100),
  );
});
