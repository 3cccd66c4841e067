import {
  consumeAll,
  createLimiter,
  type Decision,
  fixedWindow,
  parseDuration,
  type Store,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import { parseList } from "structured-headers";
import supertest from "supertest";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { expectWarnings } from "../../../test/expected-warnings.js";
import { type RateLimitMiddleware, rateLimit } from "../src/index.js";

expectWarnings("FLOODGATE_STORE_DOWN");

// The clock stands still, so that no window ends within a test.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

// Bugs of other rate limiters, by their number in the table of defects.

let nowMs = 1_789_948_815_000;
const clock = (): number => nowMs;
const store = () => memoryStore({ clock });
const ok = (_request: Request, response: Response): void => void response.json({ ok: true });

/** An app with these middlewares and a handler, and the messages of its errors. */
function appOf(...middlewares: RateLimitMiddleware[]): { app: Express; errors: Error[] } {
  const app = express();
  const errors: Error[] = [];
  for (const middleware of middlewares) app.use(middleware);
  app.use(ok);
  app.use((error: Error, _request: Request, response: Response, _next: NextFunction) => {
    errors.push(error);
    response.status(500).end();
  });
  return { app, errors };
}

async function statuses(app: Express, count: number, headers: Record<string, string> = {}, path = "/"): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push((await supertest(app).get(path).set(headers)).status);
  return all;
}

test("2: a late refund creates no key", () => {
  const own = store();
  const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 5, window: "1s" }), store: own });
  const decision = limiter.consume("k");
  limiter.reset("k");
  expect(own.size).toBe(0);
  nowMs += 5_000;
  expect([limiter.refund("k", decision), own.size, limiter.peek("k").remaining]).toEqual([0, 0, 5]);
});

test("3: limits on one store share a count only under one name, and then need the same policy", async () => {
  const shared = store();
  const minute = rateLimit({ name: "minute", policy: fixedWindow({ limit: 2, window: "1m" }), store: shared });
  const day = rateLimit({ name: "day", policy: fixedWindow({ limit: 10, window: "1d" }), store: shared });
  expect(await statuses(appOf(minute, day).app, 3)).toEqual([200, 200, 429]);
  expect([minute, day].map(({ limiter }) => (limiter.peek("127.0.0.1") as Decision).remaining)).toEqual([0, 8]);
  expect(() => rateLimit({ name: "minute", policy: fixedWindow({ limit: 2, window: "1h" }), store: shared })).toThrow(
    expect.objectContaining({ code: "FLOODGATE_NAME_TAKEN" }),
  );
});

/** Ways in which a store can fail. */
const faults: Record<string, () => Promise<never>> = {
  "never answers": () => new Promise(() => undefined),
  rejects: () => Promise.reject(new Error("store")),
  throws: () => {
    throw new Error("store");
  },
};

/** A limit of one request on a failing store. */
function undecided(fault: () => Promise<never>, onStoreError?: "allow" | "deny"): RateLimitMiddleware {
  const decides = { consume: fault, consumeAll: fault, peek: fault };
  const changes = { settle: fault, reset: fault, block: fault, unblock: fault };
  const broken: Store<"async"> = { mode: "async", ...decides, ...changes, keyState: fault };
  const options = { limit: 1, window: "1m", store: broken, timeoutMs: 10 } as const;
  return rateLimit(onStoreError === undefined ? options : { ...options, onStoreError });
}

test.each(Object.entries(faults))("4, 15: a store that %s neither delays nor fails requests", async (_, fault) => {
  const { app, errors } = appOf(undecided(fault));
  expect(await statuses(app, 8)).toEqual(Array.from({ length: 8 }, () => 200));
  expect(errors).toEqual([]);
});

test.each([undefined, null, Number.NaN, 0])("5: a policy function that returns %s is an error, never unlimited", async (answer) => {
  const limit = rateLimit({ policy: () => answer as never });
  for (const headers of ["standard", false] as const) {
    const { app, errors } = appOf(limit, rateLimit({ policy: () => answer as never, headers }));
    expect(await statuses(app, 2)).toEqual([500, 500]);
    expect(errors[0]).toMatchObject({ code: "FLOODGATE_NO_POLICY" });
  }
  if (answer !== 0) expect(() => rateLimit({ limit: answer as never, window: "1m" })).toThrow(/limit/);
});

test("5: a limit of 0 rejects every request", async () => {
  const { app } = appOf(rateLimit({ limit: 0, window: "1m", onEvent: () => undefined }));
  expect(await statuses(app, 2)).toEqual([429, 429]);
});

test("6: a rule that rejects leaves the other rule uncharged, and both are in the headers", async () => {
  const limit = rateLimit({
    store: store(),
    key: "global",
    rules: [
      { name: "outer", policy: fixedWindow({ limit: 5, window: "1h" }) },
      { name: "inner", policy: fixedWindow({ limit: 1, window: "1m" }) },
    ],
  });
  const { app } = appOf(limit);
  expect(await statuses(app, 5)).toEqual([200, 429, 429, 429, 429]);
  expect(limit.limiters.get("outer")?.peek("global")).toMatchObject({ remaining: 4 });
  const { headers } = await supertest(app).get("/");
  expect(parseList(headers["ratelimit"] as string).map(([name]) => name)).toEqual(["outer", "inner"]);
});

test.each(["30d", "365d", "36500d"] as const)("7: a window of %s works, without a timer per key", (window) => {
  const timers = vi.spyOn(globalThis, "setTimeout");
  try {
    const limiter = createLimiter({ name: "api", policy: slidingWindowLog({ limit: 2, window }), store: store() });
    const taken = Array.from({ length: 10 }, () => limiter.consume("k").allowed);
    expect(taken.filter(Boolean)).toHaveLength(2);
    nowMs += parseDuration(window) - 1;
    expect(limiter.consume("k")).toMatchObject({ allowed: false, retryAfterMs: 1 });
    nowMs += 1;
    expect(limiter.consume("k").allowed).toBe(true);
    expect(timers).not.toHaveBeenCalled();
  } finally {
    timers.mockRestore();
  }
});

test.each([500, 1_900])("8: a window of %d ms is exact to the millisecond", (windowMs) => {
  const limiter = createLimiter({ name: "api", policy: slidingWindowLog({ limit: 1, window: `${BigInt(windowMs)}ms` }), store: store() });
  limiter.consume("k");
  nowMs += windowMs - 1;
  expect(limiter.consume("k").allowed).toBe(false);
  nowMs += 1;
  expect(limiter.consume("k").allowed).toBe(true);
});

test("9: several limits are all charged, or none is", () => {
  const own = store();
  const a = createLimiter({ name: "a", policy: fixedWindow({ limit: 10, window: "1m" }), store: own });
  const b = createLimiter({ name: "b", policy: fixedWindow({ limit: 1, window: "1m" }), store: own });
  for (let i = 0; i < 7; i++) {
    consumeAll([
      { limiter: a, key: "k" },
      { limiter: b, key: "k" },
    ]);
  }
  expect(a.peek("k").remaining).toBe(9);
});

test("9: a store error does not become a 429", async () => {
  const fail = (): never => {
    throw new Error("store");
  };
  const decides = { consume: fail, consumeAll: fail, peek: fail };
  const broken = { mode: "sync" as const, ...decides, settle: fail, reset: fail, block: fail, unblock: fail, keyState: fail };
  const { app } = appOf(rateLimit({ limit: 1, window: "1m", store: broken }));
  expect(await statuses(app, 2)).not.toContain(429);
});

test.each([
  ["fixed window", fixedWindow({ limit: 10, window: "1m" })],
  ["token bucket", tokenBucket({ capacity: 10, refill: 1, every: "1h" })],
  ["log", slidingWindowLog({ limit: 10, window: "1m" })],
] as const)("10, 22: a request that is rejected takes nothing: a cheaper one still passes (%s)", async (_, policy) => {
  const { app } = appOf(rateLimit({ policy, store: store(), cost: (request) => Number(request.get("x-cost")) }));
  const answers: number[] = [];
  for (const cost of ["8", "5", "1", "1", "1"]) answers.push(...(await statuses(app, 1, { "x-cost": cost })));
  expect(answers).toEqual([200, 429, 200, 200, 429]);
});

test("12: two routes share one count by a name, or by one middleware", async () => {
  const shared = store();
  const group = () => rateLimit({ name: "group", policy: fixedWindow({ limit: 2, window: "1m" }), store: shared, key: "global" });
  const app = express();
  app.get("/a", group(), ok);
  app.get("/b", group(), ok);
  expect([...(await statuses(app, 1, {}, "/a")), ...(await statuses(app, 1, {}, "/b")), ...(await statuses(app, 1, {}, "/a"))]).toEqual([
    200, 200, 429,
  ]);
});

test("14: spraying fresh keys unblocks no blocked client", async () => {
  const limit = rateLimit({
    policy: fixedWindow({ limit: 2, window: "1m" }),
    store: memoryStore({ clock, maxKeys: 100 }),
    key: "header:x-user",
  });
  const { app } = appOf(limit);
  expect(await statuses(app, 3, { "x-user": "blocked" })).toEqual([200, 200, 429]);
  for (let i = 0; i < 5_000; i++) limit.limiter.consume(`sprayed ${i}`);
  expect(await statuses(app, 1, { "x-user": "blocked" })).toEqual([429]);
});

test.each([
  ["those that succeed", (status: number) => status < 400, [200, 200, 200, 404, 404, 429, 429]],
  ["those that fail", (status: number) => status >= 400, [404, 404, 404, 200, 200, 429, 429]],
])("16: %s are given back, and a 429 is neither charged nor given back", async (_, refundWhen, order) => {
  const own = store();
  let refunds = 0;
  const limit = rateLimit({
    policy: fixedWindow({ limit: 2, window: "1m" }),
    store: own,
    refundWhen,
    onEvent: ({ type }) => void (type === "refunded" && refunds++),
  });
  const app = express();
  app.get("/", limit, (request, response) => void response.status(Number(request.get("x-status"))).end());
  const seen: number[] = [];
  for (const status of order) {
    const [got] = await statuses(app, 1, { "x-status": `${status === 429 ? order[3] : status}` });
    seen.push(got as number);
    // The refund happens after the response closes, which the client may see earlier.
    while (got !== 429 && refundWhen(got as number) && refunds < seen.filter(refundWhen).length) await new Promise(setImmediate);
  }
  expect([seen, refunds]).toEqual([order, 3]);
});

test("17: no setup silently limits nothing: the store is optional, the limit is not", async () => {
  const { app } = appOf(rateLimit({ limit: 1, window: "1d" }));
  expect((await statuses(app, 5)).slice(1)).toEqual([429, 429, 429, 429]);
  for (const options of [{}, { limit: 1 }, { window: "1m" }, { rules: [] }])
    expect(() => rateLimit(options as never)).toThrow(/FLOODGATE|rateLimit/);
});

test("18: memory is bounded for any number of clients", () => {
  const own = memoryStore({ clock, maxKeys: 100 });
  const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 2, window: "1m" }), store: own });
  for (let i = 0; i < 1_000; i++) limiter.consume(i);
  expect(own.size).toBeLessThanOrEqual(100);
});

test.each(["standard", "draft-7", "draft-6", "legacy"] as const)(
  "18: the numbers of %s are whole, and Retry-After is at least 1",
  async (headers) => {
    const { app } = appOf(rateLimit({ policy: slidingWindowLog({ limit: 1, window: "1001ms" }), store: store(), headers }));
    await supertest(app).get("/");
    nowMs += 1_000;
    const response = await supertest(app).get("/");
    expect(response.status).toBe(429);
    expect(response.headers["retry-after"]).toBe("1");
    const values = Object.entries(response.headers).filter(([name]) => name.includes("ratelimit"));
    expect(values.length).toBeGreaterThan(1);
    for (const [, value] of values) expect(value).not.toMatch(/\d\.\d|NaN|Infinity|undefined/);
  },
);

test("23: a reset clears exactly one key", () => {
  const { limiter } = rateLimit({ policy: fixedWindow({ limit: 1, window: "1m" }), store: store() });
  const keys = ["user", "user:2", "*", "user*"];
  for (const key of keys) limiter.consume(key);
  limiter.reset("user");
  limiter.reset("*");
  expect(keys.map((key) => (limiter.peek(key) as Decision).remaining)).toEqual([1, 0, 1, 0]);
});

test.each([
  ["allow", 200],
  ["deny", 503],
] as const)("24: a store that is slow and one that fails are one outage, with one answer: %s", async (onStoreError, status) => {
  for (const fault of Object.values(faults))
    expect(await statuses(appOf(undecided(fault, onStoreError)).app, 8)).toEqual(Array.from({ length: 8 }, () => status));
});

test("25: the default policy's memory per key does not grow with the limit", () => {
  const cells = (limit: number): number => {
    const { limit: made } = rateLimit({ limit, window: "1m" }).limiter;
    return made.algorithm.size(made.policy, new Float64Array(8), 0);
  };
  expect(cells(10_000_000)).toBe(cells(10));
});

test("26: there is exactly one Retry-After header when several limits reject", async () => {
  const policy = fixedWindow({ limit: 1, window: "1m" });
  const { app } = appOf(
    rateLimit({
      store: store(),
      rules: [
        { name: "short", policy },
        { name: "long", policy },
      ],
      headers: ["standard", "legacy"],
    }),
  );
  await supertest(app).get("/");
  const { headers } = await supertest(app).get("/");
  expect(Object.keys(headers).filter((name) => /^retry-after|-(short|long)$/.test(name))).toEqual(["retry-after"]);
  expect(headers["retry-after"]).toMatch(/^\d+$/);
});

test("27: a client that forges a new address with each request is counted as one client", async () => {
  const { app } = appOf(rateLimit({ policy: fixedWindow({ limit: 1, window: "1m" }), store: store(), onEvent: () => undefined }));
  const answers: number[] = [];
  for (let i = 0; i < 20; i++)
    answers.push(...(await statuses(app, 1, { "x-forwarded-for": `203.0.113.${i}`, "x-real-ip": `203.0.113.${i}` })));
  expect(answers.filter((status) => status === 200)).toHaveLength(1);
});

test.each([
  ["draft-6", "ratelimit-reset", (seconds: number) => seconds <= 60],
  ["legacy", "x-ratelimit-reset", (seconds: number) => seconds > 1e9],
] as const)("28: the reset of %s is of one kind, allowed and limited, one limit and several", async (headers, name, isKind) => {
  const policy = fixedWindow({ limit: 1, window: "1m" });
  for (const limit of [
    { policy },
    {
      rules: [
        { name: "a", policy },
        { name: "b", policy },
      ],
    },
  ]) {
    const { app } = appOf(rateLimit({ ...limit, store: store(), headers }));
    for (const status of [200, 429]) {
      const response = await supertest(app).get("/");
      expect(response.status).toBe(status);
      expect(Number(response.headers[name])).toSatisfy(isKind);
    }
  }
});

test("29: a key function that throws lets no request through", async () => {
  const { app, errors } = appOf(
    rateLimit({
      limit: 1,
      window: "1m",
      key: () => {
        throw new Error("key");
      },
    }),
  );
  expect(await statuses(app, 10)).toEqual(Array.from({ length: 10 }, () => 500));
  expect(errors).toHaveLength(10);
});

test("30: a structured-fields parser reads the headers, and Retry-After is a number of seconds", async () => {
  const { app } = appOf(rateLimit({ name: "api", policy: fixedWindow({ limit: 1, window: "1m" }), store: store() }));
  await supertest(app).get("/");
  const { headers } = await supertest(app).get("/");
  const [[name, parameters] = []] = parseList(headers["ratelimit"] as string);
  expect([name, parameters?.get("r"), parameters?.get("t")]).toEqual(["api", 0, Number(headers["retry-after"])]);
  expect(Number(headers["retry-after"])).toBeGreaterThan(0);
});

test("31: the default policy allows no second quota at a window's edge", () => {
  const { limiter } = rateLimit({ limit: 10, window: "1m", store: store() });
  const windowMs = 60_000;
  nowMs = Math.ceil(nowMs / windowMs) * windowMs - 20;
  let allowed = 0;
  for (let i = 0; i < 40; i++) {
    if ((limiter.consume("k") as Decision).allowed) allowed++;
    nowMs += 1;
  }
  // Ten, plus one that the formula allows as soon as the first window begins to leave. A fixed window would allow twenty.
  expect(allowed).toBe(11);
});
