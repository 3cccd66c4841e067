import assert from "node:assert/strict";
import { parseRateLimit } from "ratelimit-header-parser";
import { parseDictionary, parseItem, parseList } from "structured-headers";
import {
  type Decision,
  fixedWindow,
  gcra,
  type HeadersOption,
  type Limiter,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../src/index.js";
import { type App, describe, it, items, type Response, self } from "./app.js";

const seconds = (ms: number): number => Math.ceil(ms / 1000);
const finite = (ms: number): boolean => ms > 0 && ms !== Number.POSITIVE_INFINITY;
/** The time until the retry; or until the reset, shown as at most the window. */
const shownMs = ({ retryAfterMs, resetAfterMs, policy }: Decision): number =>
  finite(retryAfterMs) ? retryAfterMs : Math.min(resetAfterMs, policy.spanMs);
const effective = (decision: Decision): number => seconds(shownMs(decision));

/** A client's parser: reads a format's headers, the reset in seconds from now. */
function parsed(headers: Record<string, string>): { limit?: number; remaining?: number; resetIn: (nowMs?: number) => number } {
  const before = Date.now();
  const { reset, ...rest } = parseRateLimit(headers) ?? {};
  return { ...rest, resetIn: (nowMs = before) => Math.floor(((reset?.getTime() ?? Number.NaN) - nowMs) / 1000) };
}

const only = (response: Response, prefix: RegExp): Record<string, string> =>
  Object.fromEntries(Object.entries(response.headers as Record<string, string>).filter(([name]) => prefix.test(name)));

const checks: Record<string, (response: Response, decision: Decision, policy: Policy, nowMs: number) => void> = {
  standard(response, decision, policy) {
    const window = policy.spanMs < 1000 ? {} : { w: seconds(policy.spanMs) };
    assert.deepEqual(items(response, "ratelimit-policy"), { api: { q: decision.limit, ...window } });
    const t = decision.retryAfterMs === Number.POSITIVE_INFINITY ? {} : { t: effective(decision) };
    assert.deepEqual(items(response, "ratelimit"), { api: { r: decision.remaining, ...t } });
  },
  "draft-7"(response, decision, policy) {
    const { limit, remaining, resetIn } = parsed(only(response, /^ratelimit/));
    assert.deepEqual([limit, remaining, resetIn()], [decision.limit, decision.remaining, effective(decision)]);
    const fields = Object.fromEntries([...parseDictionary(response.headers["ratelimit"] ?? "")].map(([name, [value]]) => [name, value]));
    assert.deepEqual(fields, { limit: decision.limit, remaining: decision.remaining, reset: effective(decision) });
    oldPolicy(response, decision, policy);
  },
  "draft-6"(response, decision, policy) {
    const { limit, remaining, resetIn } = parsed(only(response, /^ratelimit/));
    assert.deepEqual([limit, remaining, resetIn()], [decision.limit, decision.remaining, effective(decision)]);
    for (const field of ["limit", "remaining", "reset"]) {
      assert.ok(Number.isInteger(parseItem(response.headers[`ratelimit-${field}`] ?? "")[0]), field);
    }
    oldPolicy(response, decision, policy);
  },
  legacy(response, decision, _, nowMs) {
    const { limit, remaining, resetIn } = parsed(only(response, /^x-ratelimit-(limit|remaining|reset)$/));
    // The time of the reset in whole seconds, rounded up so that it is never too early.
    assert.deepEqual([limit, remaining, resetIn(0)], [decision.limit, decision.remaining, seconds(nowMs + shownMs(decision))]);
    assert.match(response.headers["x-ratelimit-reset"] ?? "", /^\d{10}$/);
    assert.equal(response.headers["x-ratelimit-retry-after"], response.headers["retry-after"]);
  },
};

function oldPolicy(response: Response, decision: Decision, policy: Policy): void {
  const [[quota, parameters] = [], ...others] = parseList(response.headers["ratelimit-policy"] ?? "");
  assert.deepEqual(others, []);
  assert.deepEqual([quota, (parameters as Map<string, unknown>).get("w")], [decision.limit, seconds(policy.spanMs)]);
}

/** The header names of each format. */
const formats: [HeadersOption, string[]][] = [
  ["standard", ["ratelimit", "ratelimit-policy"]],
  ["draft-7", ["ratelimit", "ratelimit-policy"]],
  ["draft-6", ["ratelimit-limit", "ratelimit-policy", "ratelimit-remaining", "ratelimit-reset"]],
  ["legacy", ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]],
  [
    ["standard", "legacy"],
    ["ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
  ],
  [
    ["draft-6", "legacy"],
    [
      ...["limit", "policy", "remaining", "reset"].map((name) => `ratelimit-${name}`),
      "x-ratelimit-limit",
      "x-ratelimit-remaining",
      "x-ratelimit-reset",
    ],
  ],
  [false, []],
];

const policies: [string, Policy][] = [
  ["a fixed window", fixedWindow({ limit: 2, window: "1m" })],
  ["a log with a window under a second", slidingWindowLog({ limit: 2, window: "250ms" })],
  ["a token bucket", tokenBucket({ capacity: 2, refill: 2, every: "90s" })],
  ["a sliding counter whose reset is more than a window away", slidingWindowCounter({ limit: 2, window: "10s" })],
  ["a burst", gcra({ limit: 100, window: "1h", burst: 2 })],
];

/** Headers show the decision. */
const peek = (app: App): Decision => app.limits[0]?.limiter.peek(self) as Decision;

describe("headers", () => {
  for (const [headers, names] of formats) {
    const shown = JSON.stringify(headers);
    for (const [kind, policy] of policies) {
      it(`headers: ${shown} match the decision of ${kind}, allowed and limited`, async (web) => {
        const app = await web.start({ name: "api", policy, headers });
        for (const status of [200, 200, 429]) {
          const response = await app.get();
          assert.equal(response.status, status);
          const present = Object.keys(response.headers).filter((name) => /ratelimit/.test(name));
          const expected = status === 429 && shown.includes("legacy") ? [...names, "x-ratelimit-retry-after"] : names;
          assert.deepEqual(present.sort(), [...expected].sort());
          for (const format of [headers].flat()) if (format !== false) checks[String(format)]?.(response, peek(app), policy, web.nowMs);
          const retryAfter = response.headers["retry-after"];
          if (status === 200) assert.equal(retryAfter, undefined);
          else assert.equal(retryAfter, `${Math.max(1, seconds(peek(app).retryAfterMs))}`);
        }
      });
    }
  }

  it("Retry-After is at least 1, and equals t of the limit that rejects", async (web) => {
    const app = await web.start({ name: "api", policy: slidingWindowLog({ limit: 1, window: "250ms" }) });
    await app.get();
    web.nowMs += 249;
    const response = await app.get();
    assert.equal(response.headers["retry-after"], "1");
    assert.deepEqual(items(response, "ratelimit"), { api: { r: 0, t: 1 } });
  });

  it("a reset is shown as at most the window, a retry in full", async (web) => {
    const policy = slidingWindowCounter({ limit: 3, window: "10s" });
    const app = await web.start({ name: "api", policy, headers: ["standard", "legacy"] });
    const limiter = app.limits[0]?.limiter as Limiter;
    const first = await app.get();
    assert.deepEqual(items(first, "ratelimit-policy"), { api: { q: 3, w: 10 } });
    assert.deepEqual(items(first, "ratelimit"), { api: { r: 2, t: 10 } });
    assert.equal(first.headers["x-ratelimit-reset"], `${web.nowMs / 1000 + 10}`);
    assert.equal(((await limiter.peek(self)) as Decision).resetAfterMs, 15_000);

    // A debt that outlasts the window.
    const debt = await limiter.consume(self);
    await limiter.settle(self, debt, 30);
    const rejected = await app.get();
    const t = items(rejected, "ratelimit")["api"]?.["t"] as number;
    assert.equal(rejected.status, 429);
    assert.ok(t > 10, `${t}`);
    assert.equal(rejected.headers["retry-after"], `${t}`);
    assert.equal(rejected.headers["x-ratelimit-retry-after"], `${t}`);
    assert.equal(rejected.headers["x-ratelimit-reset"], `${web.nowMs / 1000 + t}`);
  });

  it("a cost above the limit gets no Retry-After", async (web) => {
    const limit = { name: "api", policy: fixedWindow({ limit: 2, window: "1m" }), cost: () => 3 };
    const app = await web.start({ ...limit, headers: ["standard", "legacy"] });
    const response = await app.get();
    assert.equal(response.status, 429);
    assert.equal(response.headers["retry-after"], undefined);
    assert.equal(response.headers["x-ratelimit-retry-after"], undefined);
    assert.deepEqual(items(response, "ratelimit"), { api: { r: 2 } });
    assert.ok(!("retry-after" in response.body));
    assert.deepEqual(response.body["violated-policies"], ["api"]);
  });

  it("a name with quotes and backslashes parses back to itself", async (web) => {
    const name = 'a "quoted", \\ name; q=1';
    const app = await web.start({ name, policy: fixedWindow({ limit: 2, window: "1m" }) });
    const response = await app.get();
    assert.deepEqual(items(response, "ratelimit-policy"), { [name]: { q: 2, w: 60 } });
    assert.deepEqual(items(response, "ratelimit"), { [name]: { r: 1, t: 45 } });
  });

  it("numbers too large for a structured field are capped", async (web) => {
    const app = await web.start({ name: "api", policy: fixedWindow({ limit: Number.MAX_SAFE_INTEGER, window: "1m" }) });
    assert.deepEqual(items(await app.get(), "ratelimit"), { api: { r: 999_999_999_999_999, t: 45 } });
  });

  it("a window of many years is shown in seconds", async (web) => {
    const app = await web.start({ name: "api", policy: fixedWindow({ limit: 1, window: "36500d" }) });
    await app.get();
    const response = await app.get();
    assert.equal(response.status, 429);
    assert.deepEqual(items(response, "ratelimit-policy"), { api: { q: 1, w: 3_153_600_000 } });
    assert.ok(Number(response.headers["retry-after"]) > 1_000_000_000);
  });
});
