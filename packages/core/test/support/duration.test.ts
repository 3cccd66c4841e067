import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../../test/runs.js";
import {
  concurrency,
  createLimiter,
  FloodgateError,
  fixedWindow,
  gcra,
  leakyBucket,
  parseDuration,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../src/index.js";

test("a duration is a whole number with a unit, or a number of milliseconds that is a multiple of 1000", () => {
  expect(["250ms", "1s", "15m", "1h", "1d", 1000, 60_000, 3_600_000].map((value) => parseDuration(value))).toEqual([
    250, 1000, 900_000, 3_600_000, 86_400_000, 1000, 60_000, 3_600_000,
  ]);
});

test.each([1, 60, 900, 3600, 86_400, 1500, 60_001])(
  "%d could mean seconds, so it is refused, and the error says what to write",
  (value) => {
    expect(() => parseDuration(value, "window")).toThrow(
      expect.objectContaining({
        code: "FLOODGATE_INVALID_DURATION",
        message: expect.stringContaining(
          `a number of milliseconds that is a multiple of 1000, but was ${value}. Write window: "${value}s", or "${value}ms" if that is meant.`,
        ),
        at: ["window"],
      }),
    );
  },
);

test("digits as text are milliseconds if they are a multiple of 1000", () => {
  expect(() => parseDuration("60000", "window")).toThrow('but was "60000". Write window: "60000ms", or "60000s" if that is meant.');
  expect(() => parseDuration("60", "window")).toThrow('but was "60". Write window: "60s", or "60ms" if that is meant.');
});

test.each(["1 fortnight", "", "-1s", "0s", "١s", "99999999999999999999d", 0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 51])(
  "%o is no duration, and the error says what one is",
  (value) => {
    expect(() => parseDuration(value, "window")).toThrow(
      expect.objectContaining({
        code: "FLOODGATE_INVALID_DURATION",
        message: expect.stringMatching(/`window` must be a duration.*Write window: "15m"/),
      }),
    );
  },
);

test.each([
  ["1 min", "1m"],
  ["minute", "1m"],
  ["1.5h", "90m"],
  ["1.5s", "1500ms"],
  ["1min", "1m"],
  ["2 hours", "2h"],
  ["1S", "1s"],
  [" 1s", "1s"],
  ["1s ", "1s"],
])("%o is refused, and the error says how to write it", (value, example) => {
  expect(() => parseDuration(value, "window")).toThrow(`but was ${JSON.stringify(value)}. Write window: "${example}".`);
});

test("a number of units with decimals is refused, and the error writes the same duration", () => {
  const units = { s: 1000, min: 60_000, hours: 3_600_000, d: 86_400_000 };
  const thousandths = fc.integer({ min: 1, max: 99_999 }).filter((count) => count % 1000 !== 0);
  fc.assert(
    fc.property(thousandths, fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[])), (count, unit) => {
      let message = "";
      try {
        parseDuration(`${count / 1000} ${unit}`);
      } catch (error) {
        message = (error as Error).message;
      }
      expect(parseDuration(/Write duration: "(.*)"\.$/.exec(message)?.[1] ?? "")).toBe((count * units[unit]) / 1000);
    }),
    { ...runs(1000), examples: [[1100, "hours"]] },
  );
});

test.each<[call: string, option: string, make: (value: never) => unknown]>([
  ["concurrency", "hold", (hold) => concurrency({ limit: 5, hold })],
  ["createLimiter", "hold", (hold) => createLimiter({ name: "api", policy: fixedWindow({ limit: 5, window: "1m" }), hold } as never)],
  ["fixedWindow", "window", (window) => fixedWindow({ limit: 5, window })],
  ["gcra", "window", (window) => gcra({ limit: 5, window })],
  ["leakyBucket", "every", (every) => leakyBucket({ capacity: 5, leak: 1, every })],
  ["slidingWindowCounter", "window", (window) => slidingWindowCounter({ limit: 5, window })],
  ["slidingWindowLog", "window", (window) => slidingWindowLog({ limit: 5, window })],
  ["tokenBucket", "every", (every) => tokenBucket({ capacity: 5, refill: 1, every })],
])("%s names itself in the error of a missing or wrong `%s`", (call, option, make) => {
  for (const value of [...(call === "createLimiter" ? [] : [undefined]), 60, "soon"]) {
    expect(() => make(value as never)).toThrow(
      expect.objectContaining({
        code: "FLOODGATE_INVALID_DURATION",
        at: [option],
        message: expect.stringMatching(`^${call}: \`${option}\` must be`),
      }),
    );
  }
});

test("a text without a unit could mean seconds, too", () => {
  expect(() => parseDuration("60", "window")).toThrow('but was "60". Write window: "60s", or "60ms" if that is meant.');
});

test.each(["13031249d", "99999999999999999999d", `${"9".repeat(400)}ms`, 2 ** 51, Number.POSITIVE_INFINITY])(
  "%o is too long, and the error names the maximum",
  (value) => {
    expect(parseDuration("13031248d")).toBeLessThan(2 ** 50);
    expect(() => parseDuration(value, "window")).toThrow(/^`window` must be a duration of at most 13031248d, but was /);
  },
);

test("any input gives a whole number of milliseconds or a coded error", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.double(), fc.integer(), fc.stringMatching(/^\d{1,5}(ms|s|m|h|d)$/)), (value) => {
      try {
        const ms = parseDuration(value);
        return Number.isSafeInteger(ms) && ms >= 1;
      } catch (error) {
        return error instanceof FloodgateError && error.code === "FLOODGATE_INVALID_DURATION";
      }
    }),
  );
});
