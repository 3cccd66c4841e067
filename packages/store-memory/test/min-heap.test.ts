import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { MinHeap } from "../src/min-heap.js";

/** A heap, the places of its items, and the number of its moves. */
class Watched {
  /** By item: a Map of a million would take longer than the heap. */
  readonly places: number[] = [];
  moves = 0;
  readonly heap: MinHeap = new MinHeap((item, place) => {
    this.moves++;
    this.places[item] = place;
  });

  place(item: number): number {
    return this.places[item] as number;
  }
}

const steps = fc.array(
  fc.record({ what: fc.constantFrom("add", "add", "change", "delete"), item: fc.nat(100), rank: fc.oneof(fc.nat(5), fc.nat(10_000)) }),
  { maxLength: 200, size: "max" },
);

describe("a heap", () => {
  it("always has the lowest rank first", () => {
    fc.assert(
      fc.property(steps, (list) => {
        const watched = new Watched();
        const { heap } = watched;
        const sorted = new Map<number, number>();
        for (const { what, item, rank } of list) {
          const known = sorted.has(item);
          if (what === "add" && !known) heap.add(item, rank);
          else if (what === "change" && known) {
            heap.delete(watched.place(item));
            heap.add(item, rank);
          } else if (what === "delete" && known) heap.delete(watched.place(item));
          else continue;
          if (what === "delete") sorted.delete(item);
          else sorted.set(item, rank);
          // `expect` is slower than everything else here.
          const lowest = Math.min(...sorted.values());
          const isRight = heap.size === sorted.size && heap.lowest === lowest && (sorted.size === 0 || sorted.get(heap.first) === lowest);
          if (!isRight) expect.fail(`${heap.size} items, the lowest rank ${heap.lowest}, not ${sorted.size} and ${lowest}`);
        }
        for (const [item, rank] of sorted) expect(heap.rankAt(watched.place(item))).toBe(rank);
        const order = [...sorted.values()].sort((a, b) => a - b);
        for (const rank of order) {
          expect(heap.lowest).toBe(rank);
          heap.delete(watched.place(heap.first));
        }
        expect(heap.lowest).toBe(Number.POSITIVE_INFINITY);
      }),
      runs(200),
    );
  });

  it("moves at most one item per level, and has few levels", () => {
    for (const [items, levels] of [
      [100, 5],
      [10_000, 8],
      [1_000_000, 11],
    ] as const) {
      const watched = new Watched();
      const { heap } = watched;
      let most = 0;
      const counted = (act: () => void): void => {
        watched.moves = 0;
        act();
        most = Math.max(most, watched.moves);
      };
      // The worst case: every new item becomes the first.
      for (let i = 0; i < items; i++) counted(() => heap.add(i, -i));
      for (let i = 0; i < 100; i++) counted(() => heap.delete(watched.place(heap.first)));
      expect(most).toBeLessThanOrEqual(levels + 1);
    }
  });

  it("keeps its order while it grows and shrinks", () => {
    const watched = new Watched();
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 20_000; i++) watched.heap.add(i, (i * 7919) % 20_000);
      for (let i = 0; i < 20_000; i++) {
        if (watched.heap.lowest !== i) expect(watched.heap.lowest).toBe(i);
        watched.heap.delete(watched.place(watched.heap.first));
      }
    }
  });
});
