import fc from "fast-check";
import { parseList } from "structured-headers";
import { expect, test } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import { RateLimit } from "../../src/adapter.js";
import { consumeAll, createLimiter, type Decision, fixedWindow, gcra, headersOf, tokenBucket } from "../../src/index.js";
import { type HeadersOption, headerWriter } from "../../src/responses/headers.js";
import { createLimit } from "../../src/store.js";
import { FaultyStore } from "../faulty-store.js";
import { reader } from "../reader.js";

const anyName = fc.stringMatching(/^[\x20-\x7e]{1,40}$/);
const ms = (n: number) => `${BigInt(n)}ms` as const;
const anyPolicy = fc.oneof(
  fc.record({ limit: fc.integer({ min: 1, max: 1e9 }), window: fc.integer({ min: 1, max: 1e7 }).map(ms) }).map(fixedWindow),
  fc.record({ limit: fc.integer({ min: 1, max: 1e6 }), window: fc.integer({ min: 1, max: 1e9 }).map(ms) }).map(gcra),
);

function decide(name: string, policy: Parameters<typeof createLimit>[1], cost: number): Decision {
  const limit = createLimit(name, policy);
  return limit.algorithm.decide(limit, new Float64Array(8), 0, 1_789_948_800_123, cost, true);
}

const write = (option: HeadersOption | undefined, decisions: Decision[]): Record<string, string> => {
  const reported = decisions[0] as Decision;
  const report = { decisions, reported, context: { previous: undefined }, rejectedBy: reported.allowed ? undefined : reported };
  return Object.fromEntries((headerWriter("rateLimit", option)?.(report) ?? []).map(({ name, value }) => [name, value]));
};

test.each([Object.create(null), Symbol("draft-8"), [Object.create(null), "legacy"]].map((option) => [option]))(
  "a value that has no text is refused like any other",
  (option) => {
    expect(() => headerWriter("rateLimit", option as never)).toThrow("`headers` must be one of");
  },
);

test.each([true, "draft-8", "draft-11", ["draft-8", "legacy"]])("%j names no format, and the error says which one is meant", (option) => {
  expect(() => headerWriter("rateLimit", option as never)).toThrow('Write headers: "standard", the newest draft');
});

test("a structured-field parser reads back every name and number of the standard headers", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyName, anyPolicy, fc.integer({ min: 1, max: 2e6 })), { minLength: 1, maxLength: 4 }), (limits) => {
      const decisions = limits.map(([name, policy, cost]) => decide(name, policy, cost));
      const headers = write("standard", decisions);
      parseList(headers["RateLimit-Policy"] as string).forEach(([name, parameters], i) => {
        const { policy } = decisions[i] as Decision;
        expect(name).toBe(limits[i]?.[0]);
        expect(parameters.get("q")).toBe(policy.quota);
        expect(parameters.get("w")).toBe(policy.spanMs < 1000 ? undefined : Math.ceil(policy.spanMs / 1000));
      });
      parseList(headers["RateLimit"] as string).forEach(([name, parameters], i) => {
        const { remaining, retryAfterMs, resetAfterMs } = decisions[i] as Decision;
        expect(name).toBe(limits[i]?.[0]);
        expect(parameters.get("r")).toBe(remaining);
        const never = retryAfterMs === Number.POSITIVE_INFINITY;
        expect(parameters.get("t")).toBe(never ? undefined : Math.ceil((retryAfterMs || resetAfterMs) / 1000));
      });
    }),
  );
});

test("headersOf makes the headers that a middleware sets for the same decisions, in every format", async () => {
  const formats: HeadersOption[] = ["standard", "draft-7", "draft-6", "legacy", ["standard", "legacy"], ["draft-7", "legacy"], false];
  const anyLimits = fc.uniqueArray(fc.record({ name: anyName, policy: anyPolicy, cost: fc.integer({ min: 1, max: 2e6 }) }), {
    selector: ({ name }) => name,
    minLength: 1,
    maxLength: 3,
  });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...formats), anyLimits, async (headers, limits) => {
      const rules = limits.map((limit) => ({ ...limit, cost: () => limit.cost, key: "global" as const }));
      const middleware = new RateLimit("rateLimit", { rules, headers }, [], reader, () => memoryStore({ clock: () => 1e12, maxKeys: 10 }));
      const { decisions, ...outcome } = await middleware.decide({});
      const one = decisions.length === 1 ? decisions[0] : undefined;
      expect(headersOf(one ?? decisions, headers)).toEqual(Object.fromEntries(outcome.headers.map(({ name, value }) => [name, value])));
    }),
  );
});

test("headersOf refuses what is no decision, and says what to write", async () => {
  const answer = JSON.parse(JSON.stringify({ ...decide("api", fixedWindow({ limit: 1, window: "1m" }), 2) }));
  for (const given of [undefined, null, "api", 5, {}, [undefined], [{}], Promise.resolve([]), answer]) {
    expect(() => headersOf(given as never)).toThrow(
      expect.objectContaining({
        code: "FLOODGATE_INVALID_OPTION",
        message: expect.stringContaining("Write headersOf(limiter.consume(key))"),
      }),
    );
  }
  expect(() => headersOf(Promise.resolve([]) as never)).toThrow("but was given a promise: await it first.");
});

test.each(["name", "limit", "remaining", "retryAfterMs", "resetAfterMs", "atMs", "policy"])(
  "headersOf refuses a decision whose %s was lost on its way, in every format",
  (field) => {
    const formats: HeadersOption[] = ["standard", "draft-7", "draft-6", "legacy", false];
    for (const degraded of [false, true]) {
      for (const lost of [null, undefined, {}]) {
        const given = { ...decide("api", fixedWindow({ limit: 5, window: "1m" }), 1), degraded, [field]: lost };
        for (const format of formats) expect(() => headersOf(given, format)).toThrow("headersOf takes a decision");
      }
    }
  },
);

test("headersOf shows nothing of a store that failed but when to come back, and nothing of no decision", () => {
  const failed = { ...decide("api", fixedWindow({ limit: 5, window: "1m" }), 1), degraded: true };
  expect(headersOf(failed)).toEqual({});
  expect(headersOf({ ...failed, allowed: false, retryAfterMs: 500 })).toEqual({ "Retry-After": "1", "Cache-Control": "no-store" });
  expect(headersOf([])).toEqual({});
  expect(() => headersOf(failed, "draft-8" as never)).toThrow("headersOf: `headers` has no format");
});

test("headersOf shows of several decisions those that a store has made", () => {
  const anyDecisions = fc.array(fc.tuple(anyName, anyPolicy, fc.integer({ min: 1, max: 2e6 }), fc.boolean()), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(fc.constantFrom("standard", "draft-7", "draft-6", "legacy"), anyDecisions, (format, given) => {
      const all = given.map(([name, policy, cost, degraded]) => ({ ...decide(name, policy, cost), degraded }));
      const withoutWait = ({ "Retry-After": _, "Cache-Control": __, "X-RateLimit-Retry-After": ___, ...rest }: Record<string, string>) =>
        rest;
      const known = all.filter(({ degraded }) => !degraded);
      expect(withoutWait(headersOf(all, format))).toEqual(withoutWait(headersOf(known, format)));
      expect(headersOf(all, format)["Retry-After"]).toBe(
        headersOf(
          all.map((decision) => ({ ...decision, degraded: false })),
          format,
        )["Retry-After"],
      );
    }),
  );
});

test("a limit of 0 rejects while the store of the others fails, and headersOf shows nothing of those", async () => {
  const store = new FaultyStore(memoryStore({ clock: () => 1e12, maxKeys: 10 }));
  store.fault = "rejects";
  const onEvent = () => undefined;
  const limiters = [7, 0].map((limit) => createLimiter({ name: `${limit}`, policy: fixedWindow({ limit, window: "1m" }), store, onEvent }));
  const { all } = await consumeAll(limiters.map((limiter) => ({ limiter, key: "k" })));
  expect(all.map(({ degraded }) => degraded)).toEqual([true, false]);
  expect(headersOf(all)).toEqual({ "RateLimit-Policy": '"0";q=0;w=60', RateLimit: '"0";r=0', "Cache-Control": "no-store" });
});

const decision = decide("api", fixedWindow({ limit: 5, window: "1m" }), 2); // 60 s - 0.123 s to the window's end

test.each<[HeadersOption, Record<string, string>]>([
  ["standard", { "RateLimit-Policy": '"api";q=5;w=60', RateLimit: '"api";r=3;t=60' }],
  ["draft-7", { "RateLimit-Policy": "5;w=60", RateLimit: "limit=5, remaining=3, reset=60" }],
  ["draft-6", { "RateLimit-Policy": "5;w=60", "RateLimit-Limit": "5", "RateLimit-Remaining": "3", "RateLimit-Reset": "60" }],
  ["legacy", { "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "3", "X-RateLimit-Reset": "1789948860" }],
  [false, {}],
])("the format %s", (option, expected) => {
  expect(write(option, [decision])).toEqual(expected);
});

test("a draft can be combined with the legacy headers", () => {
  expect(Object.keys(write(["draft-7", "legacy"], [decision]))).toEqual([
    "RateLimit-Policy",
    "RateLimit",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
  ]);
});

test("a bucket's w is the time from empty to full, left out if it is under a second", () => {
  expect(write("standard", [decide("b", tokenBucket({ capacity: 20, refill: 10, every: "1s" }), 1)])["RateLimit-Policy"]).toBe(
    '"b";q=20;w=2',
  );
  expect(write("standard", [decide("b", tokenBucket({ capacity: 2, refill: 10, every: "1s" }), 1)])["RateLimit-Policy"]).toBe('"b";q=2');
});

test("a cost above the limit has no t", () => {
  expect(write("standard", [decide("api", fixedWindow({ limit: 5, window: "1m" }), 6)])["RateLimit"]).toBe('"api";r=5');
});

test.each([["drfat-7"], [["legacy", "standard"]], [["standard"]], [true]])("the headers option %o is rejected", (option) => {
  expect(() => headerWriter("rateLimit", option as never)).toThrow(/`headers`/);
});
