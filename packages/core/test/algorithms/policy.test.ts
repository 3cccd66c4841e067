import { expect, test } from "vitest";
import { fixedWindow, gcra, leakyBucket, slidingWindowCounter, slidingWindowLog, tokenBucket } from "../../src/index.js";
import { toPolicy } from "../../src/rules.js";

const wrong = (make: () => unknown): { code: string; message: string } => {
  try {
    make();
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error("no error was thrown");
};

test.each([
  [
    "no limit",
    () => fixedWindow({ window: "1m" } as never),
    "FLOODGATE_INVALID_OPTION",
    /`limit` must be a whole number of at least 1, but was undefined. Write limit: 100/,
  ],
  ["a limit that is not a number", () => fixedWindow({ limit: Number.NaN, window: "1m" }), "FLOODGATE_INVALID_OPTION", /but was NaN/],
  ["a limit in quotes", () => gcra({ limit: "10" as never, window: "1m" }), "FLOODGATE_INVALID_OPTION", /but was "10"/],
  ["a limit below zero", () => slidingWindowLog({ limit: -1, window: "1m" }), "FLOODGATE_INVALID_OPTION", /at least 1, but was -1/],
  ["a fraction", () => tokenBucket({ capacity: 1.5, refill: 1, every: "1s" }), "FLOODGATE_INVALID_OPTION", /`capacity`.*but was 1.5/],
  [
    "a fortnight",
    () => fixedWindow({ limit: 1, window: "1 fortnight" as never }),
    "FLOODGATE_INVALID_DURATION",
    /`window`.*but was "1 fortnight"/,
  ],
  ["no window", () => fixedWindow({ limit: 1 } as never), "FLOODGATE_INVALID_DURATION", /`window`.*but was undefined/],
  [
    "a misspelt option",
    () => fixedWindow({ limit: 1, windw: "1m" } as never),
    "FLOODGATE_UNKNOWN_OPTION",
    /no option `windw`. Did you mean `window`/,
  ],
  [
    "no options",
    () => fixedWindow(undefined as never),
    "FLOODGATE_INVALID_OPTION",
    /takes an object of options, but was given undefined. Write fixedWindow\(/,
  ],
  [
    "a window that does not divide",
    () => slidingWindowCounter({ limit: 1, window: "1s", buckets: 7 }),
    "FLOODGATE_INVALID_OPTION",
    /must divide evenly.*Write buckets: 5/,
  ],
  [
    "a window with too many buckets",
    () => slidingWindowCounter({ limit: 1, window: "1099511627776ms", buckets: 2 ** 50 }),
    "FLOODGATE_INVALID_OPTION",
    /must divide evenly.*Write buckets: 512/,
  ],
  [
    "a strict counter of one bucket",
    () => slidingWindowCounter({ limit: 1, window: "1m", strict: true }),
    "FLOODGATE_INVALID_OPTION",
    /needs `buckets` of at least 2, but there is 1.*Write buckets: 60/,
  ],
  [
    "an unknown style",
    () => tokenBucket({ capacity: 1, refill: 1, every: "1s", style: "smoth" as never }),
    "FLOODGATE_INVALID_OPTION",
    /Did you mean "smooth"/,
  ],
  [
    "a string for a boolean",
    () => slidingWindowLog({ limit: 1, window: "1s", countRejected: "no" as never }),
    "FLOODGATE_INVALID_OPTION",
    /must be true or false/,
  ],
  [
    "numbers beyond exact arithmetic",
    () => slidingWindowCounter({ limit: 10 ** 12, window: "1d" }),
    "FLOODGATE_POLICY_TOO_LARGE",
    /above 2\^52/,
  ],
  [
    "a wait longer than timers support",
    () => leakyBucket({ capacity: 100, leak: 1, every: "1d" }),
    "FLOODGATE_POLICY_TOO_LARGE",
    /would wait 8553600000 ms.*write maxDelayMs/,
  ],
  [
    "an unknown algorithm",
    () => toPolicy("rule", { algorithm: "token-buckt" }),
    "FLOODGATE_UNKNOWN_ALGORITHM",
    /Did you mean "token-bucket"/,
  ],
  ["nothing", () => toPolicy("rule", undefined), "FLOODGATE_NO_POLICY", /there was undefined. Write fixedWindow/],
])("%s is refused with a code and what to write", (_, make, code, message) => {
  const error = wrong(make);
  expect(error.code).toBe(code);
  expect(error.message).toMatch(message);
});

test.each([
  ["ten million a day", () => tokenBucket({ capacity: 10_000_000, refill: 10_000_000, every: "1d" })],
  ["ten million a day at an even pace", () => gcra({ limit: 10_000_000, window: "1d" })],
  ["a million a minute", () => gcra({ limit: 1_000_000, window: "1m" })],
  ["ten thousand a second through a queue", () => leakyBucket({ capacity: 10_000, leak: 10_000, every: "1s" })],
  ["one a year", () => tokenBucket({ capacity: 1, refill: 1, every: "365d" })],
  ["a million an hour through the sliding counter", () => slidingWindowCounter({ limit: 1_000_000, window: "1h" })],
  ["a thousand million an hour through the sliding counter", () => slidingWindowCounter({ limit: 1e9, window: "1h" })],
  ["a long queue whose waits are bounded", () => leakyBucket({ capacity: 100, leak: 1, every: "1d", maxDelayMs: 1000 })],
])("%s is exact", (_, make) => {
  expect(make).not.toThrow();
});

test("a policy is frozen, and equal options return the same policy", () => {
  const options = { algorithm: "fixed-window", limit: 5, window: "1m" } as const;
  expect(toPolicy("rule", options)).toBe(toPolicy("rule", options));
  expect(toPolicy("rule", options)).toEqual(fixedWindow({ limit: 5, window: "1m" }));
  expect(Object.isFrozen(fixedWindow({ limit: 5, window: "1m" }))).toBe(true);
});
