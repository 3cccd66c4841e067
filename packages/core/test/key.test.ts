import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeKey, type Key } from "../src/index.js";

const part = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("", ",", "\\", "(", ")", "a,b", "(a,b)", "\\(a", "__proto__", "\ud800"),
  fc.integer(),
);
const tuple = <T>(of: fc.Arbitrary<T>) => fc.array(of, { minLength: 1, maxLength: 3 });
const anyKey = fc.oneof(part, tuple(part), tuple(fc.oneof(part, tuple(part)))) as fc.Arbitrary<Key>;

/** What tells keys apart: the texts of their parts, and whether they are a tuple. */
const meaning = (key: Key): string => JSON.stringify(texts(key));
const texts = (key: unknown): unknown => (Array.isArray(key) ? key.map(texts) : String(key));

test("two keys have one text only if they are the same", () => {
  fc.assert(
    fc.property(anyKey, anyKey, (a, b) => (encodeKey(a) === encodeKey(b)) === (meaning(a) === meaning(b))),
    { numRuns: 5000 },
  );
});

test("a long key is known by its hash, so that no client chooses how much memory a key takes", () => {
  const lengths = [200, 201, 100_000].map((length) => encodeKey("x".repeat(length)).length);
  expect(lengths).toEqual([200, 66, 66]);
  expect(encodeKey(["a".repeat(300), "b"])).not.toBe(encodeKey(["a".repeat(300), "c"]));
  expect(encodeKey(`${"a".repeat(300)}\ud800`)).not.toBe(encodeKey(`${"a".repeat(300)}\ud801`));
  expect(encodeKey(encodeKey("x".repeat(201)))).not.toBe(encodeKey("x".repeat(201)));
});

test("a plain string stays as it is", () => {
  expect(encodeKey("user:42")).toBe("user:42");
});

test("a number, a bigint and their text are one key, so that a client's choice of JSON type gains nothing", () => {
  expect(new Set([42, 42n, "42"].map(encodeKey)).size).toBe(1);
});

test.each([undefined, null, {}, Number.NaN, Number.POSITIVE_INFINITY, Symbol("s"), () => 1, [], [undefined], [[]], [[["a"]]], [{}]])(
  "%o is no key, and the error says what one is",
  (value) => {
    expect(() => encodeKey(value as Key)).toThrow(
      expect.objectContaining({ code: "FLOODGATE_INVALID_KEY", message: expect.stringContaining("A key must be a string") }),
    );
  },
);
