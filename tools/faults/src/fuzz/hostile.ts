import type { PolicyOptions } from "@floodgate/core";
import fc from "fast-check";

/** Strings that trip careless programs: special property names, delimiters, control characters. */
const names = [
  "__proto__",
  "constructor",
  "toString",
  "",
  " ",
  "\0",
  "\x001\0a",
  "(a)",
  "(a,b)",
  "a,b",
  "\\#",
  "%00",
  "{a}",
  "}",
  "*",
  "\r\n",
  "\ud800",
];

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 200, arbitrary: fc.constantFrom("ann", "bob", ...names) },
  { weight: 200, arbitrary: fc.string({ unit: "binary", maxLength: 20 }) },
  { weight: 20, arbitrary: fc.integer({ min: 190, max: 210 }).map((length) => "\ud83d".repeat(length)) },
  { weight: 1, arbitrary: fc.constant("x".repeat(100_000)) },
);

const part: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 8, arbitrary: hostileText },
  { weight: 1, arbitrary: fc.double() },
  { weight: 1, arbitrary: fc.bigInt() },
  { weight: 1, arbitrary: fc.boolean() },
);

/** Values that TypeScript forbids but JavaScript and JSON allow. */
export const anything: fc.Arbitrary<unknown> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      undefined,
      null,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      -0,
      0,
      -1,
      0.5,
      2 ** 53,
      1e308,
      "1",
      "1m",
      Symbol("s"),
      () => 1,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      maxDepth: 1,
    }),
  },
);

export const hostileKey: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 12, arbitrary: part },
  { weight: 4, arbitrary: fc.array(part, { maxLength: 4 }) },
  { weight: 1, arbitrary: anything },
);

export const hostileCost: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 1, max: 5 }) },
  { weight: 2, arbitrary: fc.maxSafeNat() },
  { weight: 1, arbitrary: anything },
);

/** Mostly small numbers, and the largest. */
function upTo(max: number): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 20 }) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 10_000_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max }) },
  );
}

/** Excludes the last few integers below 2^53: both client libraries misread them by adding a character code before subtracting zero's. */
const count = upTo(Number.MAX_SAFE_INTEGER - 48);
const ms = upTo(2 ** 50);
const textOf = (n: number): string => `${n}ms`;
const time = ms.map(textOf);

function policy<A extends PolicyOptions["algorithm"], O>(
  algorithm: A,
  options: { [Word in keyof O]: fc.Arbitrary<O[Word]> },
): fc.Arbitrary<PolicyOptions> {
  return fc.record({ algorithm: fc.constant(algorithm), ...options }) as unknown as fc.Arbitrary<PolicyOptions>;
}

/** Policies in rules file notation; some are too large to be valid. */
export const policyOptions: fc.Arbitrary<PolicyOptions> = fc.oneof(
  policy("fixed-window", { limit: count, window: time }),
  policy("sliding-window-log", { limit: count, window: time, countRejected: fc.boolean() }),
  policy("sliding-window-counter", { limit: count, window: time }),
  ...[2, 3, 10].map((buckets) =>
    policy("sliding-window-counter", {
      limit: count,
      window: ms.map((width) => textOf(buckets * (width % 2 ** 40) + buckets)),
      buckets: fc.constant(buckets),
      strict: fc.boolean(),
    }),
  ),
  policy("token-bucket", { capacity: count, refill: count, every: time, style: fc.constantFrom("smooth", "interval") }),
  policy("leaky-bucket", { capacity: count, leak: count, every: time }),
  policy("leaky-bucket", { capacity: count, leak: count, every: time, maxDelayMs: count }),
  policy("gcra", { limit: count, window: time, burst: count }),
);
