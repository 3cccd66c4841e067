import * as assert from "node:assert/strict";
import { fixedWindow, type LimiterKey, slidingWindowLog } from "@floodgate/core";
import * as fc from "fast-check";
import type { Suite, World } from "./world.js";

const megabyte = "k".repeat(1_000_000);

/** Keys that an attacker might send to reach another client's count or to avoid being counted. */
const hostile: readonly (readonly [string, LimiterKey])[] = [
  ["the empty string", ""],
  ["a tuple of the empty string", [""]],
  ["a tuple of two empty strings", ["", ""]],
  ["__proto__", "__proto__"],
  ["constructor", "constructor"],
  ["toString", "toString"],
  ["hasOwnProperty", "hasOwnProperty"],
  ["undefined", "undefined"],
  ["a space", " "],
  ["a newline", "\n"],
  ["NUL", "\0"],
  ["NUL twice", "\0\0"],
  ["NUL within", "a\0b"],
  ["NUL and a number", "\x001\0a"],
  ["another NUL and a number", "\x000\0a"],
  ["a", "a"],
  ["A", "A"],
  ["a high surrogate on its own", "\ud800"],
  ["another high surrogate on its own", "\ud801"],
  ["a low surrogate on its own", "\udc00"],
  ["surrogates the wrong way round", "\udc00\ud800"],
  ["the replacement character", "\ufffd"],
  ["two replacement characters", "\ufffd\ufffd"],
  ["an astral character", "\u{10000}"],
  ["é in one character", "\u00e9"],
  ["é in two", "e\u0301"],
  ["a text that means é in UTF-8", "\u00c3\u00a9"],
  ["an opening parenthesis", "("],
  ["both parentheses", "()"],
  ["a backslash", "\\"],
  ["two backslashes", "\\\\"],
  ["an escaped parenthesis", "\\("],
  ["a comma", ","],
  ["a text that looks like a tuple", "(a,b)"],
  ["a tuple of two", ["a", "b"]],
  ["a tuple of one with a comma", ["a,b"]],
  ["a text with a comma", "a,b"],
  ["a comma at an end", ["a,", "b"]],
  ["a comma at a beginning", ["a", ",b"]],
  ["a backslash before the separator", ["a\\", "b"]],
  ["an escaped separator", ["a\\,b"]],
  ["a colon", "a:b"],
  ["a tuple with a colon", ["a:", "b"]],
  ["another tuple with a colon", ["a", ":b"]],
  ["braces", "{a}"],
  ["closing braces", "a}b"],
  ["a glob", "*"],
  ["a percent sign", "%00"],
  ["a client without a key", { missingKeyIp: "203.0.113.9" }],
  ["another client without a key", { missingKeyIp: "2001:db8::1" }],
  ["a text that looks like a client without a key", "missing-key-ip:203.0.113.9"],
  ["the same escaped", "\\missing-key-ip:203.0.113.9"],
  ["a tuple that looks like a client without a key", ["missing-key-ip:203.0.113.9"]],
  ["a tuple that looks like its two halves", ["missing-key-ip:", "203.0.113.9"]],
  ["the tuple that a client without a key once was", ["ip", "203.0.113.9"]],
  ["a text that looks like a secret's digest", `secret:${"0".repeat(64)}`],
  ["the same escaped", `\\secret:${"0".repeat(64)}`],
  ["a tuple of a text that looks like a secret's digest", [`secret:${"0".repeat(64)}`]],
  ["a text that looks like a hash", `\\#${"0".repeat(64)}`],
  ["a megabyte", megabyte],
  ["a megabyte with another end", `${megabyte.slice(0, -1)}l`],
  ["a megabyte with another beginning", `l${megabyte.slice(1)}`],
  ["a megabyte and one", `${megabyte}k`],
  ["a tuple of megabytes", [megabyte, megabyte]],
];

/** Every key has its own count, whatever characters it contains. */
export function keyCases(suite: Suite): void {
  suite.it("hostile keys are limited, and no two of them share a count", async (world) => {
    const limiter = world.limiter(fixedWindow({ limit: 2, window: "1m" }));
    // The limiter's own consume takes no client without a key.
    const consume = (key: LimiterKey) => world.store.consume(limiter.limit, limiter.keyText(key), 1);
    for (const [name, key] of hostile) {
      assert.deepEqual(await left(limiter.peek(key)), [true, 2], `${name} shares a count`);
      assert.deepEqual(await left(consume(key)), [true, 1], name);
    }
    for (const [name, key] of hostile) assert.deepEqual(await left(consume(key)), [true, 0], `${name} shares a count`);
    for (const [name, key] of hostile) assert.deepEqual(await left(consume(key)), [false, 0], `${name} is not limited`);
    await limiter.reset("__proto__");
    await limiter.reset(megabyte);
    for (const [name, key] of hostile) {
      const allowed = key === "__proto__" || key === megabyte;
      assert.equal((await limiter.peek(key)).allowed, allowed, `${name} after the reset of two others`);
    }
  });

  suite.it("any two different strings or tuples have separate counts", async (world) => {
    const unit = fc.constantFrom(...",a\\():\0{}\ufffd01", "\ud800", "\udc00", "secret:", "missing-key-ip:");
    const letters = fc.string({ unit, maxLength: 4 });
    const keys = fc.oneof<fc.Arbitrary<string | string[]>[]>(letters, fc.array(letters, { minLength: 1, maxLength: 3 }));
    await fc.assert(
      fc.asyncProperty(keys, keys, async (one, other) => {
        const limiter = world.limiter(fixedWindow({ limit: 1, window: "1m" }));
        await limiter.consume(one);
        assert.equal((await limiter.peek(one)).allowed, false);
        assert.equal((await limiter.peek(other)).allowed, JSON.stringify(one) !== JSON.stringify(other));
      }),
      world.runs(300),
    );
  });

  suite.it("limits of different names count apart, and no name and key combine to another pair", async (world) => {
    const policy = slidingWindowLog({ limit: 1, window: "1m" });
    const names = ["a", "a:b", "a:", "{a}", "a}", "(a", "a\\", " a", "a ", "__proto__", "constructor", "*"];
    const limiters = names.map((name) => world.limiter(policy, name));
    const keys = ["c", "b:c", ":c", "{c}", "}c", "a", "a:c", "\0c", "__proto__"];
    for (const limiter of limiters) {
      for (const key of keys) assert.equal((await limiter.consume(key)).allowed, true, `${limiter.name} and ${key}`);
    }
    for (const limiter of limiters) for (const key of keys) assert.equal((await limiter.consume(key)).allowed, false);
  });

  suite.it("a thousand concurrent keys are counted separately", async (world) => {
    const limiter = world.limiter(fixedWindow({ limit: 2, window: "365d" }));
    const ask = async (): Promise<number> => {
      const all = await Promise.all(Array.from({ length: 1000 }, async (_, i) => await limiter.consume(`user:${i}`)));
      return all.filter((decision) => decision.allowed).length;
    };
    assert.deepEqual([await ask(), await ask(), await ask()], [1000, 1000, 0]);
  });
}

async function left(answer: ReturnType<ReturnType<World["limiter"]>["peek"]>): Promise<[boolean, number]> {
  const { allowed, remaining } = await answer;
  return [allowed, remaining];
}
