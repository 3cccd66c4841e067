import { fixedWindow, gcra, leakyBucket, type Policy, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { expect, test } from "vitest";
import { mostIn } from "../src/store/algorithms.js";

/** A state at a time, in a world so small that every life can be lived. */
interface Moment {
  readonly nowMs: number;
  readonly cells: Float64Array;
}

/** All moments a millisecond later: whatever cost was let in. */
function* after(policy: Policy, { nowMs, cells }: Moment): Generator<[Moment, number]> {
  const limit = createLimit("alone", policy);
  for (let cost = 0; cost <= policy.quota; cost++) {
    const next = Float64Array.from({ length: 30 }, (_, i) => cells[i] ?? 0);
    if (cost > 0 && !limit.algorithm.decide(limit, next, 0, nowMs, cost, true).allowed) return;
    yield [{ nowMs: nowMs + 1, cells: next }, cost];
  }
}

const nameOf = ({ nowMs, cells }: Moment): string => `${nowMs} ${cells.join(" ")}`;

/** The most units that any life lets in from each time on for so long. */
function mostEver(policy: Policy, warmMs: number, stretchMs: number): Map<number, number> {
  const known = new Map<string, number>();
  const best = (moment: Moment, leftMs: number): number => {
    const name = `${leftMs} ${nameOf(moment)}`;
    const before = known.get(name);
    if (before !== undefined) return before;
    let most = 0;
    for (const [next, cost] of after(policy, moment)) most = Math.max(most, cost + (leftMs === 0 ? 0 : best(next, leftMs - 1)));
    known.set(name, most);
    return most;
  };
  const found = new Map<number, number>();
  let moments = new Map([["", { nowMs: 1000, cells: new Float64Array(30) } as Moment]]);
  for (let ms = 0; ms <= warmMs; ms++) {
    const later = new Map<string, Moment>();
    let most = 0;
    for (const moment of moments.values()) {
      most = Math.max(most, best(moment, stretchMs));
      for (const [next] of after(policy, moment)) later.set(nameOf(next), next);
    }
    found.set(1000 + ms, most);
    moments = later;
  }
  return found;
}

const everyMs = (ms: number) => `${ms}ms` as "1ms";

test("the bound of an interval bucket is the most that any arrivals get", () => {
  for (const capacity of [1, 2, 3]) {
    for (const refill of [1, 2, 4]) {
      for (const every of [1, 2, 3]) {
        const policy = tokenBucket({ capacity, refill, every: everyMs(every), style: "interval" });
        for (const stretchMs of [0, 1, 2, 3, 4, 7]) {
          const most = Math.max(...mostEver(policy, 5, stretchMs).values());
          expect([policy.stateKind, capacity, refill, stretchMs, most]).toEqual([
            policy.stateKind,
            capacity,
            refill,
            stretchMs,
            Number(mostIn(policy, 1000, stretchMs)),
          ]);
        }
      }
    }
  }
});

test.each([
  tokenBucket({ capacity: 2, refill: 2, every: everyMs(3) }),
  gcra({ limit: 1, window: everyMs(2), burst: 3 }),
  leakyBucket({ capacity: 2, leak: 2, every: everyMs(3) }),
  slidingWindowLog({ limit: 2, window: everyMs(3) }),
])("the bound of $stateKind is the most that any arrivals get", (policy) => {
  for (const stretchMs of [0, 1, 2, 3, 5]) {
    expect(Math.max(...mostEver(policy, 3, stretchMs).values())).toBe(Number(mostIn(policy, 1000, stretchMs)));
  }
});

test("the bound of a fixed window is the most from each time on", () => {
  const policy = fixedWindow({ limit: 2, window: everyMs(3) });
  for (const stretchMs of [0, 1, 2, 4]) {
    for (const [fromMs, most] of mostEver(policy, 3, stretchMs)) expect(most).toBe(Number(mostIn(policy, fromMs, stretchMs)));
  }
});
