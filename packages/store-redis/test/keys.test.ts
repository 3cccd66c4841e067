import { fixedWindow, gcra, leakyBucket, type Policy, slidingWindowCounter, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { encodeKey } from "@floodgate/core/store";
import calculateSlot from "cluster-key-slot";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { blockSuffix, hashTag, keySuffix, markOf, parseStoredKey } from "../src/keys.js";

/** Characters that matter when a slot is computed. */
const text = fc.string({
  unit: fc.constantFrom("a", "{", "}", "%", "%00", "%7D", "%D800", ":", "\0", "\r\n", "\ud800", "\udc00", "\ufffd", "\u{1f600}", "*", "0"),
  maxLength: 6,
});

describe("a Redis key", () => {
  test("is unique for each request key and survives the conversion to UTF-8", () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(hashTag(one) === hashTag(other)).toBe(one === other);
        expect(Buffer.from(hashTag(one)).toString()).toBe(hashTag(one));
      }),
      { numRuns: 2000 },
    );
  });

  test("has the slot of its hash tag, so all limits of a request key share one", () => {
    fc.assert(
      fc.property(
        text,
        text.filter((name) => name !== ""),
        (key, name) => {
          const tag = hashTag(key);
          const whole = calculateSlot(`floodgate:${tag}${keySuffix(name, fixedWindow({ limit: 1, window: "1m" }))}`);
          expect(tag.slice(1, -1)).not.toMatch(/^$|\}/);
          expect(whole).toBe(calculateSlot(tag.slice(1, -1)));
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("depends on a limit's name, algorithm and times, and not on its numbers", () => {
    const suffixes = [
      keySuffix("a", fixedWindow({ limit: 1, window: "1m" })),
      keySuffix("b", fixedWindow({ limit: 1, window: "1m" })),
      keySuffix("a", fixedWindow({ limit: 1, window: "2m" })),
      keySuffix("a", slidingWindowCounter({ limit: 1, window: "1m" })),
      keySuffix("a", slidingWindowCounter({ limit: 1, window: "1m", buckets: 6 })),
    ];
    expect(new Set(suffixes).size).toBe(suffixes.length);
    expect(keySuffix("a", fixedWindow({ limit: 9, window: "1m" }))).toBe(suffixes[0]);
  });

  test("has a bounded length for any client input", () => {
    expect(hashTag(encodeKey("x".repeat(1_000_000))).length).toBeLessThan(100);
    expect(Buffer.byteLength(hashTag(encodeKey("\ud800".repeat(200))))).toBeLessThan(1100);
  });

  test("tells a tool which key and limit it belongs to", () => {
    const name = fc.string({ unit: fc.constantFrom("a", ":", "{", "}", "blocks", "fw-1000"), minLength: 1, maxLength: 4 });
    const policy = fc.constantFrom<Policy>(
      fixedWindow({ limit: 1, window: "1m" }),
      slidingWindowLog({ limit: 1, window: "1m" }),
      slidingWindowCounter({ limit: 1, window: "1m", buckets: 6 }),
      tokenBucket({ capacity: 1, refill: 1, every: "1s", style: "interval" }),
      tokenBucket({ capacity: 1, refill: 1, every: "1s" }),
      leakyBucket({ capacity: 1, leak: 1, every: "1s" }),
      gcra({ limit: 1, window: "1m" }),
    );
    fc.assert(
      fc.property(text, name, policy, (key, name, policy) => {
        const tagged = `my:app:${hashTag(key)}`;
        const state = tagged + keySuffix(name, policy);
        expect(parseStoredKey("my:app", state)).toEqual({ key, name, holds: "state", stateKind: policy.stateKind });
        expect(parseStoredKey("my:app", `${state}:holds`)).toEqual(parseStoredKey("my:app", state));
        expect(parseStoredKey("my:app", tagged + blockSuffix(name))).toEqual({ key, name, holds: "block", stateKind: undefined });
        expect(parseStoredKey("my:app", markOf(state, "0a1b"))).toBeUndefined();
        expect(parseStoredKey("my", state)).toBeUndefined();
      }),
    );
    expect(parseStoredKey("floodgate", "floodgate:rules")).toBeUndefined();
    expect(parseStoredKey("floodgate", "floodgate:{a}")).toBeUndefined();
  });
});
