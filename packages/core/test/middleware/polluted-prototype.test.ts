import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import { type Outcome, RateLimit } from "../../src/adapter.js";
import { type CombinedDecision, consumeAll, createLimiter, fixedWindow, type Rule } from "../../src/index.js";
import { reader } from "../reader.js";

/** Some code of an app copies JSON of a client into Object.prototype, so every object seems to have its properties. */
const values = [true, 0, "shadow", {}];
const prototype = Object.prototype as unknown as Record<string, unknown>;

/** All words of core and the memory store: options, fields and local names. */
const words = new Set<string>();
for (const folder of ["packages/core/src", "packages/store-memory/src"]) {
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))) {
    for (const [word] of readFileSync(join(folder, file), "utf8").matchAll(/\b[a-z][A-Za-z]*\b/g)) words.add(word);
  }
}
// Descriptors, iterators and promises of the language break by these.
for (const word of ["get", "set", "value", "writable", "then", "done", "return", "throw", "next"]) words.delete(word);
for (const word of Object.getOwnPropertyNames(Object.prototype)) words.delete(word);

function polluted<T>(word: string, value: unknown, act: () => T): T {
  prototype[word] = value;
  try {
    return act();
  } finally {
    delete prototype[word];
  }
}

/** An error is no pass. */
function passes(ask: () => boolean): boolean {
  try {
    return ask();
  } catch {
    return false;
  }
}

const window = "365d";
const store = memoryStore({ clock: () => 1e12 });
const rules: Rule<object>[] = [
  { name: "first", limit: 2, window },
  { name: "second", key: "global", limit: 100_000, window, ban: { after: 1000, within: "1h", for: "1h" } },
];

type Ask = (key: string) => boolean;

function requests(options: object): Ask {
  const byKey = { ...reader, clientIp: (request: object) => (request as { key: string }).key };
  const limit = new RateLimit<object>("rateLimit", options as never, [], byKey, () => store);
  return (key) => (limit.decide({ key }) as Outcome).action !== "reject";
}

function together(): Ask {
  const limiters = [2, 3].map((limit) => createLimiter({ name: `of ${limit}`, policy: fixedWindow({ limit, window }), store }));
  return (key) => (consumeAll(limiters.map((limiter) => ({ limiter, key }))) as CombinedDecision).allowed;
}

it.each<[string, Ask]>([
  ["requests with one limit", requests({ name: "alone", limit: 2, window })],
  ["requests with two rules and a ban", requests({ rules })],
  ["limiters that are asked together", together()],
])("%s pass no limit by a property of Object.prototype", (_, ask) => {
  const evading: unknown[] = [];
  for (const word of words) {
    values.forEach((value, i) => {
      const passed = polluted(word, value, () => [1, 2, 3].filter(() => passes(() => ask(`${word} ${i}`))));
      if (passed.length > 2) evading.push([word, value]);
    });
  }
  expect(evading).toEqual([]);
});

it("an option that only Object.prototype has is an error", () => {
  for (const option of ["skip", "cost", "mode", "onStoreError", "keySecret"]) {
    expect(() =>
      polluted(
        option,
        () => true,
        () => requests({ limit: 2, window }),
      ),
    ).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_OPTION", message: expect.stringContaining("Object.prototype") }));
  }
});
