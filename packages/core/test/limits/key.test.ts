import { createHash, createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../../test/runs.js";
import { anyCharacter } from "../../../conformance/test/characters.js";
import type { Key } from "../../src/index.js";
import { type CountedKey, countedText, type KeyDigest, missingKeyText, namedMissingKeyText } from "../../src/limits/key.js";
import { KeyDigests, keyDigests } from "../../src/rules/secret-keys.js";
import { encodeKey } from "../../src/store.js";

const digests = new KeyDigests();
const secrets = ["ann's token", "(", "secret:", digests.digest("ann's token").text];
const digestsOfSecrets = secrets.map((secret) => digests.digest(secret));
const addresses = ["203.0.113.9", "2001:db8::/56"];
/** Characters that appear in encoded keys. */
const marks = ["", ",", "\\", "(", ")", "\\#", "secret:", "missing-key-ip:", "a", "\ud800", ...addresses];
const texts = [...digestsOfSecrets, ...secrets.map((text) => ({ text })), ...addresses.map((ip) => ({ text: missingKeyText(ip) }))].map(
  ({ text }) => text,
);
const part = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.constantFrom("a,b", "(a,b)", "\\(a", "__proto__", "x".repeat(201), "(".repeat(300), ...marks, ...texts),
  fc.array(fc.constantFrom(...marks, ...texts), { maxLength: 4 }).map((parts) => parts.join("")),
  fc.integer(),
);
const tuple = <T>(of: fc.Arbitrary<T>) => fc.array(of, { minLength: 1, maxLength: 3 });
const anyKey = fc.oneof(part, tuple(part), tuple(fc.oneof(part, tuple(part)))) as fc.Arbitrary<Key>;

const digest = fc.constantFrom(...digestsOfSecrets);
/** Keys with some secret parts. */
const countedKey = fc.oneof(digest, anyKey, tuple(fc.oneof(part, digest, tuple(part)))) as fc.Arbitrary<CountedKey>;

/** A key's identity: the texts of its parts, and whether each is a tuple or a digest. */
const meaning = (key: CountedKey): string => JSON.stringify(partMeaning(key));
const partMeaning = (key: unknown): unknown => {
  if (Array.isArray(key)) return key.map(partMeaning);
  return typeof key === "object" ? { digest: (key as KeyDigest).text } : String(key);
};

/** Keys that resemble a key: its own encoded text, or the text of a similar one. */
const alike = (key: CountedKey): CountedKey[] => {
  const text = countedText(key);
  return [text, `\\${text}`, text.slice(1), [text], text.slice(1, -1).split(",")];
};

test("different keys have different texts, with and without secret parts", () => {
  fc.assert(
    fc.property(countedKey, countedKey, (a, b) => {
      for (const other of [b, ...alike(b)]) expect(countedText(a) === countedText(other)).toBe(meaning(a) === meaning(other));
    }),
    runs(5000),
  );
});

test("no key has the text of a keyless client that is counted by its address", () => {
  const missing = new Set(addresses.map(missingKeyText));
  fc.assert(
    fc.property(countedKey, (key) => {
      const all = [key, ...alike(key), ...[...missing].flatMap((text) => [text, [text], ...alike(text), [["missing-key-ip:", text]]])];
      expect(all.map((key) => countedText(key as CountedKey)).filter((text) => text.startsWith("missing-key-ip:"))).toEqual([]);
    }),
    runs(2000),
  );
});

test("no plain key has the text of a secret's digest", () => {
  fc.assert(
    fc.property(anyKey, (key) => {
      for (const one of [key, ...(alike(key) as Key[])]) expect(encodeKey(one)).not.toMatch(/^secret:/);
    }),
    runs(2000),
  );
});

test.each([
  ["203.0.113.9", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["2001:0DB8:0:01ff::1", "2001:db8:0:100::/56"],
  ["2001:db8:0:100::/56", "2001:db8:0:100::/56"],
])("a client without a key is named by its address in any notation: %s", (given, address) => {
  expect(namedMissingKeyText({ missingKeyIp: given }, 56)).toBe(`missing-key-ip:${address}`);
});

test.each(["", "ann", "203.0.113", "2001:db8::/48", "203.0.113.0/24", 7, undefined, null])("missingKeyIp rejects %o", (address) => {
  expect(() => namedMissingKeyText({ missingKeyIp: address as string }, 56)).toThrow(
    expect.objectContaining({ code: "FLOODGATE_INVALID_KEY", message: expect.stringContaining('Write { missingKeyIp: "203.0.113.9" }') }),
  );
});

test("a secret's digest is SHA-256 of a prefix and the key, or HMAC-SHA-256 with `keySecret`", () => {
  const secret = "k".repeat(32);
  const message = "floodgate:secret-key:ann's token";
  expect(digests.digest("ann's token").text).toBe(`secret:${createHash("sha256").update(message).digest("hex")}`);
  expect(new KeyDigests(secret).digest("ann's token").text).toBe(`secret:${createHmac("sha256", secret).update(message).digest("hex")}`);
});

test.each(["k".repeat(31), "", 7, null, {}, undefined])(
  "a `keySecret` that is not a string of 32 characters is rejected and not shown: %o",
  (secret) => {
    let message = "";
    try {
      keyDigests("rateLimit", { keySecret: secret });
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toMatch(/^rateLimit: `keySecret` must be a string of at least 32 characters, but (has|was) /);
    if (typeof secret === "string" && secret !== "") expect(message).not.toContain(secret);
  },
);

test.each([Symbol("ann's token"), { "ann's token": 1 }, ["ann's token", { a: 1 }], function annsToken() {}, null, Number.NaN])(
  "no error shows an invalid secret key: %o",
  (key) => {
    expect(() => digests.digest(key as never)).toThrow(
      expect.objectContaining({ code: "FLOODGATE_INVALID_KEY", message: expect.not.stringMatching(/ann/) }),
    );
  },
);

test("a long part of a tuple is hashed alone, so the other parts stay readable", () => {
  expect(encodeKey(["ann", ",".repeat(15_000)])).toMatch(/^\(ann,\\\\#[0-9a-f]{64}\)$/);
});

test("a long key is hashed, so a client cannot choose how much memory it takes", () => {
  const lengths = [200, 201, 100_000].map((length) => encodeKey("x".repeat(length)).length);
  expect(lengths).toEqual([200, 66, 66]);
  expect(encodeKey(["a".repeat(300), "b"])).not.toBe(encodeKey(["a".repeat(300), "c"]));
  expect(encodeKey(`${"a".repeat(300)}\ud800`)).not.toBe(encodeKey(`${"a".repeat(300)}\ud801`));
  expect(encodeKey(encodeKey("x".repeat(201)))).not.toBe(encodeKey("x".repeat(201)));
});

test("the error for a tuple says that a part of it is invalid", () => {
  expect(() => encodeKey(["ann", undefined] as never)).toThrow("but one was undefined");
});

test("a plain string is not changed", () => {
  expect(encodeKey("user:42")).toBe("user:42");
});

test("a number, a bigint and their text are one key, so changing the JSON type does not evade a limit", () => {
  expect(new Set([42, 42n, "42"].map(encodeKey)).size).toBe(1);
});

test.each([undefined, null, {}, Number.NaN, Number.POSITIVE_INFINITY, Symbol("s"), () => 1, [], [undefined], [[]], [[["a"]]], [{}]])(
  "%o is not a valid key, and the error says what is",
  (value) => {
    expect(() => encodeKey(value as Key)).toThrow(
      expect.objectContaining({ code: "FLOODGATE_INVALID_KEY", message: expect.stringContaining("A key must be a string") }),
    );
  },
);
