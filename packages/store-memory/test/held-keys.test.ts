import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HeldKeys, type Use } from "../src/held-keys.js";

/** What `HeldKeys` is, naively: entries that are sorted anew for each question. */
class SortedKeys {
  readonly entries = new Map<string, { handle: number; use: Use }>();

  least(): Use | undefined {
    const uses = [...this.entries.values()].map(({ use }) => use);
    return uses.sort((a, b) => a.share - b.share || a.resetAtMs - b.resetAtMs)[0];
  }
}

const uses = fc.record({ share: fc.constantFrom(0.5, 0.6, 0.75, 1, 1), resetAtMs: fc.nat(1000) });
const steps = fc.array(
  fc.record({
    what: fc.constantFrom("hold", "hold", "hold", "update", "move", "delete", "next"),
    key: fc.nat(60),
    handle: fc.nat(),
    use: uses,
  }),
  { maxLength: 300, size: "max" },
);

describe("held keys", () => {
  it("are in the order of a sorted array, whatever is held, changed and let go", () => {
    fc.assert(
      fc.property(steps, (list) => {
        const held = new HeldKeys();
        const sorted = new SortedKeys();
        for (const { what, key: number, handle, use } of list) {
          const key = `key-${number}`;
          const known = sorted.entries.get(key);
          if (what === "hold" && known === undefined) {
            held.hold(key, handle, use);
            sorted.entries.set(key, { handle, use });
          } else if (what === "update" && known !== undefined) {
            held.update(key, use);
            known.use = use;
          } else if (what === "move" && known !== undefined) {
            held.move(key, handle);
            known.handle = handle;
          } else if (what === "delete") {
            held.delete(key);
            sorted.entries.delete(key);
          } else if (what === "next" && sorted.entries.size > 0) {
            expect(sorted.entries.has(held.next())).toBe(true);
          }
          expect(held.size).toBe(sorted.entries.size);
          expect(held.get(key)).toBe(sorted.entries.get(key)?.handle);
          if (held.size > 0) expect(sorted.entries.get(held.first())?.use).toEqual(sorted.least());
        }
        // Looking at one after the other comes by all of them.
        const seen = new Set(Array.from({ length: held.size }, () => held.next()));
        expect([...seen].sort()).toEqual([...sorted.entries.keys()].sort());
        // Letting the first go again and again gives them in order.
        const order: Use[] = [];
        while (held.size > 0) {
          order.push(sorted.entries.get(held.first())?.use as Use);
          held.delete(held.first());
        }
        expect(order).toEqual([...order].sort((a, b) => a.share - b.share || a.resetAtMs - b.resetAtMs));
      }),
      { numRuns: 100 },
    );
  });
});
