import { asCharge } from "@floodgate/core/store";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import request from "supertest";
import { describe, expect, it } from "vitest";
import {
  calendarWindow,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type HeadersOption,
  headersOf,
  leakyBucket,
  limitFor,
  memoryStore,
  type Policy,
  rateLimit,
  type Store,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../express/src/index.js";
import { rateLimit as honoLimit } from "../../hono/src/index.js";
import { expectLimited, expectNotLimited, type TestedResponse, testClock, unlimitedStore } from "../src/index.js";

/** A client of one app with a limit of 2 a minute, named "api". */
type Client = (setup: { readonly store: Store; readonly headers?: HeadersOption }) => () => Promise<TestedResponse>;

const limit = { name: "api", limit: 2, window: "1m" } as const;

const clients: Record<string, Client> = {
  "supertest and Express": (setup) => {
    const app = express();
    app.use(rateLimit({ ...limit, ...setup }));
    app.get("/", (_, res) => void res.send("hello"));
    return () => request(app).get("/");
  },
  "a Response and Hono": (setup) => {
    const app = new Hono();
    app.use(honoLimit({ ...limit, ...setup, key: "global" }));
    app.get("/", (c) => c.text("hello"));
    return async () => app.request("/");
  },
  "inject and Fastify": ({ store, headers }) => {
    const app = Fastify();
    const calls = limitFor({ ...limit, key: "global", store });
    app.addHook("onRequest", async (_, reply) => {
      const { allowed, all } = await calls.check({});
      reply.headers(headersOf(all, headers));
      if (!allowed)
        reply
          .code(429)
          .type("application/problem+json")
          .send({ "violated-policies": ["api"] });
    });
    app.get("/", async () => "hello");
    return () => app.inject("/");
  },
};

function messageOf(run: () => void): string {
  try {
    run();
  } catch (error) {
    expect((error as Error).stack?.split("\n").find((line) => line.startsWith("    at "))).toContain("testing.test.ts");
    return (error as Error).message;
  }
  throw new Error("nothing was refused");
}

describe.each(Object.entries(clients))("%s", (_, client) => {
  it("tells limited responses from others, and says what was seen", async () => {
    const clock = testClock();
    const get = client({ store: memoryStore({ clock }) });
    const first = await get();
    expectNotLimited(first, { remaining: 1 });
    expectNotLimited(await get());
    const limited = await get();
    expectLimited(limited);
    expectLimited(limited, { by: "api", retryAfter: 61 });

    expect(messageOf(() => expectLimited(first))).toMatch(
      /^The request should be limited, but the status of its response is 200\.\n\n {2}status 200\n {2}RateLimit-Policy: "api";q=2;w=60\n {2}RateLimit: "api";r=1;t=/,
    );
    expect(messageOf(() => expectLimited(limited, { by: "login" }))).toContain('limited by "login", but it was limited by "api".');
    expect(messageOf(() => expectLimited(limited, { retryAfter: 60 }))).toContain("Retry-After: 60, but the response says 61.");
    expect(messageOf(() => expectNotLimited(limited))).toContain('The request should pass, but "api" rejected it.');
    expect(messageOf(() => expectNotLimited(first, { remaining: 2 }))).toContain("leave 2 units, but the response says 1.");

    clock.advance("2m");
    expectNotLimited(await get(), { remaining: 1 });
  });

  it("reads the headers of every format, and says when a response has no such header", async () => {
    for (const headers of ["draft-7", "draft-6", "legacy", ["standard", "legacy"]] as const) {
      const get = client({ store: memoryStore({ clock: testClock() }), headers });
      expectNotLimited(await get(), { remaining: 1 });
      expectNotLimited(await get(), { remaining: 0 });
      expectLimited(await get(), { retryAfter: 61 });
    }
    const none = await client({ store: memoryStore(), headers: false })();
    expectNotLimited(none);
    expect(messageOf(() => expectNotLimited(none, { remaining: 1 }))).toContain(
      "the response has no RateLimit header: no limit counted it",
    );
    expect(messageOf(() => expectLimited(none))).toContain("no RateLimit header: no limit counted it");
  });

  it("is never limited with an unlimited store, with the headers of its limit", async () => {
    const get = client({ store: unlimitedStore() });
    for (let i = 0; i < 5; i++) expectNotLimited(await get(), { remaining: 2 });
  });
});

it("a test clock refuses a text, and an invalid date, at once", () => {
  expect(() => testClock().set("2030-06-01T00:00:00Z" as never)).toThrow('was "2030-06-01T00:00:00Z". Write new Date("2030-01-01").');
  expect(() => testClock(new Date("tomorrow"))).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_CLOCK" }));
});

describe("a response that is no 429", () => {
  it("of an app that failed is neither limited nor not", () => {
    const failed = { status: 500, headers: {} };
    expect(messageOf(() => expectLimited(failed))).toContain("is 500: the app failed.");
    expect(messageOf(() => expectNotLimited(failed))).toContain("is 500: the app failed.");
  });

  it("of a limit that denies while its store fails is told as that", async () => {
    const app = express();
    const store = { ...unlimitedStore(), consume: () => Promise.reject(new Error("down")), mode: "async" } as unknown as Store;
    app.use(rateLimit({ ...limit, store, onStoreError: "deny", onEvent: () => undefined }));
    const response = await request(app).get("/");
    expect(messageOf(() => expectLimited(response))).toContain("is 503: the store failed, and the limit denies then.");
    expect(messageOf(() => expectNotLimited(response))).toContain("is 503: the store failed");
  });
});

it("names the limit that rejected among several, in a response whose body nobody read", async () => {
  const app = new Hono();
  const rules = [
    { name: 'the "hour"', limit: 5, window: "1h" as const },
    { name: "minute", limit: 1, window: "1m" as const },
  ];
  app.use(honoLimit({ rules, key: "global", store: memoryStore({ clock: testClock() }), body: "no" }));
  app.get("/", (c) => c.text("hello"));
  await app.request("/");
  const limited = await app.request("/");
  expectLimited(limited, { by: "minute" });
  expect(messageOf(() => expectLimited(limited, { by: 'the "hour"' }))).toContain('it was limited by "minute"');
  expect(messageOf(() => expectLimited({ status: 429, headers: {} }, { by: "a" }))).toContain("does not say which limit");
});

describe("a test clock", () => {
  it("stands still until it is turned or set", () => {
    const clock = testClock();
    expect(clock()).toBe(Date.UTC(2030, 0, 1));
    clock.advance("90s");
    clock.advance("1ms");
    expect(clock()).toBe(Date.UTC(2030, 0, 1, 0, 1, 30, 1));
    clock.set(new Date(5));
    expect(clock()).toBe(5);
    expect(testClock(7)()).toBe(7);
    expect(() => clock.advance("1 minute" as never)).toThrow("duration");
  });
});

describe("what is no response", () => {
  it.each([expectLimited, expectNotLimited])("is an error of its own: %o", (assertion) => {
    for (const given of [undefined, null, 429, {}, { status: 429 }, { status: 429, headers: null }])
      expect(() => assertion(given as never)).toThrow("A response was expected");
    expect(() => assertion(Promise.resolve(new Response()) as never)).toThrow("a promise. Await it first");
  });
});

describe("an unlimited store", () => {
  const policies: { readonly [Name in Policy["algorithm"]]: Policy & { readonly algorithm: Name } } = {
    "fixed-window": fixedWindow({ limit: 2, window: "1m" }),
    "sliding-window-log": slidingWindowLog({ limit: 2, window: "1m" }),
    "sliding-window-counter": slidingWindowCounter({ limit: 2, window: "1m" }),
    "token-bucket": tokenBucket({ capacity: 2, refill: 1, every: "1s" }),
    "leaky-bucket": leakyBucket({ capacity: 2, leak: 1, every: "1s" }),
    gcra: gcra({ limit: 2, window: "1m" }),
    "calendar-window": calendarWindow({ limit: 2, per: "day" }),
    concurrency: concurrency({ limit: 2, hold: "30s" }),
  };

  it.each(Object.entries(policies))("allows every cost of a %s, and keeps nothing", (_, policy) => {
    const limiter = createLimiter({ name: "api", policy, store: unlimitedStore() });
    limiter.block("a", "1h");
    for (let i = 0; i < 5; i++) {
      const decision = limiter.consume("a", { cost: 3 });
      expect(decision).toMatchObject({ allowed: true, remaining: 2, retryAfterMs: 0, delayMs: 0 });
      expect(limiter.settle("a", decision, 9)).toBe(0);
    }
    limiter.reset("a");
    limiter.unblock("a");
    expect(limiter.peek("a")).toMatchObject({ allowed: true, remaining: 2 });
    expect(limiter.keyState("a").states[0]?.decision).toMatchObject({ allowed: true, remaining: 2 });
  });

  it("runs any number of works at once, and renews their slots", async () => {
    const limiter = createLimiter({ name: "api", policy: policies.concurrency, store: unlimitedStore() });
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => limiter.run("a", () => new Promise((go) => setTimeout(go, 1, "done")))),
    );
    expect(answers).toEqual(Array.from({ length: 5 }, () => expect.objectContaining({ allowed: true, value: "done" })));
    const decision = limiter.consume("a");
    expect(limiter.store.renew?.(limiter.limit, "a", asCharge(decision))).toMatchObject({ allowed: true, remaining: 2 });
  });
});
