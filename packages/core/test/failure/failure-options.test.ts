import { expect, test } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { createLimiter, fixedWindow } from "../../src/index.js";
import { FaultyStore } from "../faulty-store.js";

const policy = fixedWindow({ limit: 5, window: "1m" });
const store = new FaultyStore(simpleStore());
const memory = simpleStore();
const make = (options: object) => createLimiter({ name: "api", policy, store, ...options });

test.each<[string, object, RegExp]>([
  ["no time at all", { timeoutMs: 0 }, /`timeoutMs` must be a whole number of at least 1, but was 0. Write timeoutMs: 100/],
  ["a time as text", { timeoutMs: "1s" }, /`timeoutMs`.*but was "1s"/],
  ["half a millisecond", { timeoutMs: 0.5 }, /`timeoutMs`.*but was 0.5/],
  ["a time that no timer holds", { timeoutMs: 2 ** 31 }, /`timeoutMs` must be less than 2\^31.*but was 2147483648. Write timeoutMs: 100/],
  [
    "a misspelt word",
    { onStoreError: "alow" },
    /`onStoreError` must be "allow", "deny" or a store that answers at once, but was "alow". Did you mean "allow"\?/,
  ],
  ["another word", { onStoreError: "memory" }, /but was "memory". Write onStoreError: memoryStore\(\)/],
  [
    "an address, whose password is not shown",
    { onStoreError: "redis://app:secret@redis" },
    /but was an address. Write onStoreError: memoryStore\(\)/,
  ],
  ["a function", { onStoreError: () => "allow" }, /but was the function onStoreError. Write onStoreError: memoryStore\(\)/],
  ["null", { onStoreError: null }, /`onStoreError` must be.*but was null/],
  [
    "a fallback that answers by promise",
    { onStoreError: new FaultyStore(memory) },
    /onStoreError takes a store in this process, which answers at once/,
  ],
  [
    "a share of another type",
    { onStoreError: { store: new FaultyStore(memory), share: 1 / 2 } },
    /onStoreError takes a store in this process, which answers at once/,
  ],
  ["a share of nothing", { onStoreError: { share: 1 / 2 } }, /onStoreError: `store` must be a store.*but was undefined/],
  ["a misspelt share", { onStoreError: { store: memory, shares: 2 } }, /onStoreError has no option `shares`. Did you mean `share`/],
  [
    "a share of 0",
    { onStoreError: { store: memory, share: 0 } },
    /`share` must be 1 \/ n for n processes, but was 0. Write share: 1 \/ 4 for four processes/,
  ],
  ["a share above 1", { onStoreError: { store: memory, share: 4 } }, /`share`.*but was 4/],
  ["two thirds", { onStoreError: { store: memory, share: 2 / 3 } }, /`share`.*but was 0.66/],
  ["NaN", { onStoreError: { store: memory, share: Number.NaN } }, /`share`.*but was NaN/],
  ["a share as text", { onStoreError: { store: memory, share: "1/4" } }, /`share`.*but was "1\/4"/],
  ["an option that is unknown", { timeoutMS: 5 }, /no option `timeoutMS`. Write timeoutMs: 5/],
])("%s is refused when the limiter is made, with what to write", (_, options, message) => {
  expect(() => make(options)).toThrow(
    expect.objectContaining({
      code: expect.stringMatching(/^FLOODGATE_(INVALID|UNKNOWN)_OPTION$/),
      message: expect.stringMatching(message),
    }),
  );
});

test("a store cannot be its own fallback", () => {
  expect(() => createLimiter({ name: "api", policy, store: memory, onStoreError: { store: memory } })).toThrow(
    /must be another store than `store`/,
  );
});

test("1 / n is a valid share for every whole n", () => {
  for (let processes = 1; processes <= 1000; processes++) make({ onStoreError: { store: simpleStore(), share: 1 / processes } });
});

test.each([undefined, "allow", "deny", memory, { store: memory }])("onStoreError accepts %o", (onStoreError) => {
  expect(make({ onStoreError, timeoutMs: 2 ** 31 - 1 }).store.mode).toBe("async");
});
