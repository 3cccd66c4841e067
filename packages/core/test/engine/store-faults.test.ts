import assert from "node:assert/strict";
import { expectWarnings } from "../../../../test/expected-warnings.js";
import { fixedWindow, leakyBucket } from "../../src/index.js";
import { type Fault, FaultyStore } from "../faulty-store.js";
import { type App, describe, it, type LimitSetup, memory, unhandledDuring, type Web } from "./app.js";

expectWarnings("onEvent: a listener has failed");

const faults: Fault[] = ["rejects", "throws", "never answers", "answers late", "fails late"];

/** Long enough for an in-process answer, short enough to wait for. */
const timeoutMs = 20;

/** The names of the rate limit headers. */
function limitHeaders(headers: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(headers).filter((name) => name.includes("ratelimit"));
}

/** `onStoreError` decides requests when the store fails, or answers late or never. */
const policy = fixedWindow({ limit: 2, window: "1m" });
const headers = ["standard", "legacy"] as const;

/** A limit on a failing store, and that store. */
function failing(web: Web, fault: Fault | undefined, more: LimitSetup = {}): { limit: LimitSetup; store: FaultyStore } {
  const store = new FaultyStore(web.store);
  store.fault = fault;
  const { onEvent } = web.listen("degraded");
  return { limit: { policy, store, timeoutMs, headers, onEvent, ...more }, store };
}

const fallback = (web: Web): NonNullable<LimitSetup["onStoreError"]> => memory(() => web.nowMs);

/** Sends a request; the response must have no rate limit headers. */
async function sendWithoutHeaders(app: App): Promise<Awaited<ReturnType<App["get"]>>> {
  const response = await app.get();
  assert.deepEqual(limitHeaders(response.headers), []);
  return response;
}

describe("a failing store", () => {
  for (const fault of faults) {
    it(`that ${fault}: requests pass by default, and the decision says degraded`, async (web) => {
      const app = await web.start(failing(web, fault).limit);
      const { status, body } = await sendWithoutHeaders(app);
      assert.deepEqual([status, body.decision.degraded, body.decision.allowed], [200, true, true]);
      assert.deepEqual(
        web.events.map(({ type }) => type),
        ["store-error", "degraded"],
      );
    });

    it(`that ${fault}: "deny" responds with a 503 problem and Retry-After`, async (web) => {
      let served = 0;
      const { limit } = failing(web, fault, { name: "api", onStoreError: "deny" });
      const app = await web.start({ limits: [limit], handler: () => ({ body: ++served }) });
      const { status, headers, text } = await sendWithoutHeaders(app);
      assert.deepEqual([status, served], [503, 0]);
      assert.match(headers["content-type"] ?? "", /^application\/problem\+json\b/);
      assert.deepEqual([headers["retry-after"], headers["cache-control"]], ["1", "no-store"]);
      const { type, ...problem } = JSON.parse(text);
      assert.match(type, /#temporary-reduced-capacity$/);
      assert.deepEqual([problem.status, problem["violated-policies"], problem["retry-after"]], [503, ["api"], 1]);
    });

    it(`that ${fault}: a fallback store limits requests`, async (web) => {
      const app = await web.start(failing(web, fault, { onStoreError: fallback(web) }).limit);
      assert.deepEqual([(await sendWithoutHeaders(app)).status, (await sendWithoutHeaders(app)).status], [200, 200]);
      const limited = await sendWithoutHeaders(app);
      assert.deepEqual([limited.status, limited.headers["retry-after"]], [429, "45"]);
    });

    it(`that ${fault}: late answers are discarded, each request has one response, and no rejection is unhandled`, async (web) => {
      const unhandled = await unhandledDuring(async () => {
        let served = 0;
        const { limit, store } = failing(web, fault, { policy: fixedWindow({ limit: 3, window: "1m" }) });
        const app = await web.start({ limits: [limit], handler: () => ({ body: ++served }) });
        assert.deepEqual(await app.statuses(2), [200, 200]);
        store.arrive();
        store.fault = undefined;
        assert.deepEqual(await app.statuses(1), [200]);
        assert.deepEqual([served, app.errors], [3, []]);
      });
      assert.deepEqual(unhandled, []);
    });
  }

  it("sends breaker events to all open middlewares, even if one listener throws", async (web) => {
    const { limit, store } = failing(web, "rejects");
    const heard: string[] = [];
    const starting = ["closed", "throwing", "sound"].map((name) => {
      const onEvent: LimitSetup["onEvent"] = ({ type }) => {
        if (type !== "breaker") return;
        heard.push(name);
        if (name === "throwing") throw new Error(name);
      };
      return web.start({ ...limit, name, onEvent });
    });
    const [closed, , sound] = (await Promise.all(starting)) as [App, App, App];
    for (const middleware of closed.limits) middleware.close();
    assert.deepEqual(await sound.statuses(6), [200, 200, 200, 200, 200, 200]);
    assert.deepEqual([heard, store.asked, sound.errors], [["throwing", "sound"], 5, []]);
  });

  it("gets rate limit headers again as soon as it answers", async (web) => {
    const { limit, store } = failing(web, "rejects");
    const app = await web.start(limit);
    await sendWithoutHeaders(app);
    store.fault = undefined;
    assert.equal((await app.get()).headers["ratelimit"], '"default";r=1;t=45');
    store.fault = "rejects";
    await sendWithoutHeaders(app);
  });

  it("limits each process to its share with `share`", async (web) => {
    const onStoreError = { store: memory(() => web.nowMs), share: 1 / 2 };
    const app = await web.start(failing(web, "rejects", { policy: fixedWindow({ limit: 4, window: "1m" }), onStoreError }).limit);
    assert.deepEqual(await app.statuses(3), [200, 200, 429]);
  });

  it("receives the fallback's usage on its return", async (web) => {
    const { limit, store } = failing(web, "rejects", { onStoreError: fallback(web) });
    const app = await web.start(limit);
    assert.deepEqual(await app.statuses(1), [200]);
    store.fault = undefined;
    assert.deepEqual(await app.statuses(2), [200, 429]);
  });

  it("rejects nobody in shadow mode, whatever onStoreError is", async (web) => {
    for (const onStoreError of ["deny", fallback(web)] as const) {
      const app = await web.start(failing(web, "rejects", { onStoreError, mode: "shadow" }).limit);
      for (let i = 0; i < 4; i++) assert.equal((await sendWithoutHeaders(app)).status, 200);
    }
  });

  it("names only enforced limits in the 503", async (web) => {
    const rules = [
      { name: "a", policy },
      { name: "b", policy, mode: "shadow" },
      { name: "c", policy },
    ] as const;
    const { limit } = failing(web, "rejects", { onStoreError: "deny" });
    const { policy: _, ...shared } = limit;
    const { status, text } = await sendWithoutHeaders(await web.start({ ...shared, rules }));
    assert.deepEqual([status, JSON.parse(text)["violated-policies"]], [503, ["a", "c"]]);
  });

  it("does not change the headers of another limit", async (web) => {
    const { limit } = failing(web, "rejects");
    const app = await web.start({ limits: [limit, { name: "sound", policy, headers: ["draft-6", "legacy"] }] });
    const response = await app.get();
    assert.equal(response.headers["ratelimit-remaining"], "1");
    assert.equal(response.headers["x-ratelimit-remaining"], "1");
    assert.equal(response.headers["ratelimit-policy"], "2;w=60");
  });

  it("calls onLimited for the 503, which may change the body and the status", async (web) => {
    const { limit } = failing(web, "rejects", { onStoreError: "deny" });
    const app = await web.start({ ...limit, onLimited: (_, decision) => ({ body: { degraded: decision?.degraded } }) });
    const { status, body } = await sendWithoutHeaders(app);
    assert.deepEqual([status, body], [503, { degraded: true }]);
    const other = await web.start({ ...limit, onLimited: () => ({ status: 500, body: "later" }) });
    assert.equal((await sendWithoutHeaders(other)).status, 500);
  });

  it("holds a request for its turn in the fallback's queue", async (web) => {
    const queue = leakyBucket({ capacity: 4, leak: 1, every: "40ms" });
    const app = await web.start(failing(web, "never answers", { policy: queue, onStoreError: fallback(web) }).limit);
    assert.equal((await app.get()).body.decision.delayMs, 0);
    assert.equal((await app.get()).body.decision.delayMs, 40);
  });

  it("refunds what a fallback charged, and nothing for requests that were allowed uncharged", async (web) => {
    const refundWhen = (): boolean => true;
    const app = await web.start(
      failing(web, "rejects", { policy: fixedWindow({ limit: 1, window: "1m" }), onStoreError: fallback(web), refundWhen }).limit,
    );
    assert.deepEqual(await app.statuses(3), [200, 200, 200]);
    web.events.length = 0;
    const allowing = await web.start(failing(web, "rejects", { refundWhen }).limit);
    assert.deepEqual(await allowing.statuses(2), [200, 200]);
    assert.deepEqual(new Set(web.events.map(({ type }) => type)), new Set(["store-error", "degraded"]));
  });

  for (const [what, broken] of [
    ["key", { key: () => Promise.reject(new Error("key")) }],
    ["policy", { policy: () => Promise.reject(new Error("policy")) }],
    ["cost", { cost: () => Promise.reject(new Error("cost")) }],
  ] as [string, LimitSetup][]) {
    it(`is not reported when the app's ${what} function fails`, async (web) => {
      const { limit, store } = failing(web, "rejects", { onStoreError: "deny", ...broken });
      const app = await web.start(limit);
      assert.equal((await sendWithoutHeaders(app)).status, 500);
      assert.deepEqual([app.codes, web.events, store.asked], [[what], [], 0]);
    });
  }
});
