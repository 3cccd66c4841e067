import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type FloodgateEvent, slidingWindowLog } from "@floodgate/core";
import { dashboard } from "@floodgate/dashboard/express";
import { memoryStore, rateLimit } from "@floodgate/express";
import { type DecisionLine, decisionLog } from "@floodgate/metrics/decisions";
import { prometheus } from "@floodgate/metrics/prometheus";
import { fileRules } from "@floodgate/rules";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import express from "express";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import supertest, { type Response } from "supertest";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

// "Why do I get a 429?": for each way in which a request can be rejected, what the client, the events, the decision log, the metrics, the
// dashboard with its request card, and `floodgate why` say.

/** The dashboard's name for all requests. */
const wholeRequests = "";
const fixed = (limit: number): string => `policy: { algorithm: fixed-window, limit: ${limit}, window: 365d }`;
const { write } = tempFolder();
const file = write(
  "limits.yaml",
  `rules:
  - { name: fixed, match: { path: /fixed }, key: user, ${fixed(1)} }
  - { name: log, match: { path: /log }, key: user, policy: { algorithm: sliding-window-log, limit: 1, window: 1h } }
  - { name: counter, match: { path: /counter }, key: user, limit: 1, window: 1h }
  - { name: tokens, match: { path: /tokens }, key: user, policy: { algorithm: token-bucket, capacity: 1, refill: 1, every: 1h } }
  - { name: queue, match: { path: /queue }, key: user, policy: { algorithm: leaky-bucket, capacity: 1, leak: 1, every: 1h, maxDelayMs: 0 } }
  - { name: cells, match: { path: /cells }, key: user, policy: { algorithm: gcra, limit: 1, window: 1h, burst: 1 } }
  - { name: quota, match: { path: /quota }, key: user, policy: { algorithm: calendar-window, limit: 1, per: year } }
  - { name: slots, match: { path: /slots }, key: user, policy: { algorithm: concurrency, limit: 1, hold: 30s } }
  - { name: costly, match: { path: /costly }, key: user, cost: 3, ${fixed(5)} }
  - { name: closed, match: { path: /closed }, key: global, limit: 0, window: 1m }
  - { name: blocked, match: { path: /blocked }, key: user, ${fixed(5)} }
  - { name: tries, match: { path: /tries }, key: user, ${fixed(1)}, ban: { after: 1, within: 1h, for: 1d } }
  - { name: keyed, match: { path: /keyed }, key: header:x-api-key, onMissingKey: reject, ${fixed(5)} }
  - { name: exact, match: { path: /exact/* }, key: user, ambiguousPath: reject, ${fixed(5)} }
  - { name: plans, match: { path: /plans }, key: user, ${fixed(5)}, plans: { free: { limit: 1 } } }
  - { name: wide, match: { path: /two }, key: user, ${fixed(9)} }
  - { name: narrow, match: { path: /two }, key: user, ${fixed(1)} }
  - { name: network, match: { path: /network }, key: ip, ${fixed(1)} }
  - { name: trial, match: { path: /trial }, key: user, mode: shadow, ${fixed(1)} }
`,
);

let redisServer: RedisServer;
let redis: Redis;
let server: Server;
const registry = new Registry();
const lines: DecisionLine[] = [];
const requests: Extract<FloodgateEvent, { type: "request" }>[] = [];
const ends: (() => unknown)[] = [];
let client: ReturnType<typeof supertest>;
let limit: ReturnType<typeof rateLimit>;

/** A slow request has begun, and may end. */
let begun = (): void => undefined;
let end = (): void => undefined;
let over = Promise.resolve();

/** A store that nobody answers. */
const away = redisStore(new Redis(1, "127.0.0.1", { lazyConnect: true, retryStrategy: () => null }).on("error", () => undefined));

beforeAll(async () => {
  redisServer = await startRedis();
  redis = new Redis(redisServer.port, redisServer.host);
  ends.push(
    prometheus(registry),
    decisionLog((line) => lines.push(line)),
  );
  const page = dashboard({ showKeys: true });
  ends.push(() => page.close());
  const onEvent = (event: FloodgateEvent): void => void (event.type === "request" && requests.push(event));
  const user = (req: express.Request): string => req.get("x-user") ?? "ann";
  const rules = await fileRules(file);
  limit = rateLimit({
    rules,
    store: redisStore(redis, { denyCache: false }),
    timeoutMs: 10_000,
    keys: { user },
    plan: (req) => req.get("x-plan"),
    onEvent,
  });
  const small = { policy: slidingWindowLog({ limit: 1, window: "1h" }), key: user, store: away, onEvent };
  const denying = rateLimit({ name: "denying", ...small, onStoreError: "deny" });
  const falling = rateLimit({ name: "falling", ...small, onStoreError: memoryStore() });
  const opening = rateLimit({ name: "opening", ...small });
  ends.push(...[limit, denying, falling, opening, rules].map((one) => () => one.close()));
  const app = express();
  app.use("/dashboard", page);
  app.use("/denying", denying);
  app.use("/falling", falling);
  app.use("/opening", opening);
  app.use(limit, async (req, res) => {
    if (req.get("x-slow") !== undefined) {
      begun();
      await over;
    }
    res.end();
  });
  server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  client = supertest(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  for (const end of ends) await end();
  server.close();
  redis.disconnect();
  await redisServer.stop();
});

const send = async (path: string, headers: Record<string, string> = {}): Promise<Response> => await client.get(path).set(headers);
const used = (path: string) => () => send(path);

/** How many requests had each result, by the metric. */
async function outcomes(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const { values } = (await registry.getSingleMetric("floodgate_rate_limiting_request_outcomes_total")?.get()) ?? { values: [] };
  for (const { labels, value } of values) {
    const result = String(labels["result"]);
    if (value > 0) counts[result] = (counts[result] ?? 0) + value;
  }
  return counts;
}

/** @param url of a Redis in place of the app's. */
async function why(path: string, more: readonly string[] = [], url = `redis://${redisServer.host}:${redisServer.port}`): Promise<string> {
  const to = ["--file", file, "--redis", url];
  const { out, err } = await floodgate(["why", "--request", `GET ${path}`, "--key", "user=ann", "--ip", "127.0.0.1", ...more, ...to]);
  return (out + err).replace(/^GET \S+: /, "");
}

/** What the dashboard's card of a request says of one rule. */
async function card(path: string, rule: string, plan: string | undefined): Promise<string> {
  const asked = { method: "GET", path, ip: "127.0.0.1", keys: { user: "ann", denying: "ann", falling: "ann", opening: "ann" }, plan };
  const headers = { connection: "keep-alive", "sec-fetch-site": "same-origin" };
  const { body } = await client.post("/dashboard/data/request").set(headers).send(asked);
  return body.rules.find((said: { rule: string }) => said.rule === rule).words;
}

interface Said {
  readonly status?: number;
  /** Of the response's body. */
  readonly detail?: RegExp;
  readonly result?: string;
  /** The rule that decides: in the event, and what `violated-policies` names. */
  readonly by: string;
  readonly why: RegExp;
  readonly card?: RegExp;
  readonly headers?: Record<string, string>;
  readonly args?: readonly string[];
}

const soon = /^Try again in \d+ seconds?\.$/;
const never = /^The request costs \d, more than the limit of \d ever allows\.$/;
const rejected = (by: string): RegExp => new RegExp(`^would be rejected with 429 by ${by}\\. It would pass in \\w+`);

it.each<[string, string, () => Promise<unknown>, Said]>([
  ["a fixed window is used up", "/fixed", used("/fixed"), { by: "fixed", why: rejected("fixed") }],
  ["a sliding log is full", "/log", used("/log"), { by: "log", why: rejected("log") }],
  ["a sliding counter is used up", "/counter", used("/counter"), { by: "counter", why: rejected("counter") }],
  ["a token bucket is empty", "/tokens", used("/tokens"), { by: "tokens", why: rejected("tokens") }],
  ["a queue is full", "/queue", used("/queue"), { by: "queue", why: rejected("queue") }],
  ["requests come faster than the rate", "/cells", used("/cells"), { by: "cells", why: rejected("cells") }],
  ["the year's quota is used up", "/quota", used("/quota"), { by: "quota", why: rejected("quota") }],
  [
    "another request is in flight",
    "/slots",
    async () => {
      const running = new Promise<void>((resolve) => {
        begun = resolve;
      });
      over = new Promise((resolve) => {
        end = resolve;
      });
      void send("/slots", { "x-slow": "1" }).catch(() => undefined);
      await running;
    },
    { by: "slots", why: rejected("slots") },
  ],
  [
    "the cost is above what is left",
    "/costly",
    used("/costly"),
    { by: "costly", why: /rejected with 429 by costly[\s\S]*rejects: 2 left for a cost of 3/ },
  ],
  ["the limit is 0", "/closed", async () => 0, { by: "closed", detail: never, why: /^would be rejected with 429 by closed, for ever/ }],
  [
    "the key is blocked by hand",
    "/blocked",
    async () => limit.limiters.get("blocked")?.block("ann", "1h"),
    { by: "blocked", result: "blocked", card: /^rejects: blocked, for/, why: /rejected with 429 by blocked[\s\S]*rejects: blocked, for/ },
  ],
  [
    "the key is banned",
    "/tries",
    async () => (await send("/tries")) && send("/tries"),
    { by: "tries", result: "banned", card: /^rejects: banned, for/, why: /rejected with 429 by tries[\s\S]*rejects: banned, for/ },
  ],
  [
    "the key is missing",
    "/keyed",
    async () => 0,
    {
      by: "keyed",
      result: "missing-key",
      detail: /^The request has no key to count it by\.$/,
      why: /^would be rejected with 429 by keyed, because its key is missing/,
    },
  ],
  [
    "servers read the path in different ways",
    "/exact/%5c..//b",
    async () => 0,
    {
      by: "exact",
      status: 400,
      result: "ambiguous-path",
      detail: /^Servers read this path in different ways\./,
      why: /^would be rejected with 400 by exact, because servers read its path in different ways/,
    },
  ],
  [
    "the plan has a smaller limit",
    "/plans",
    () => send("/plans", { "x-plan": "free" }),
    { by: "plans", headers: { "x-plan": "free" }, args: ["--plan", "free"], why: rejected("plans") },
  ],
  ["one of two limits is used up", "/two", used("/two"), { by: "narrow", why: rejected("narrow") }],
  [
    "somebody else behind the same address has used the limit up",
    "/network",
    () => send("/network", { "x-user": "bob" }),
    { by: "network", why: rejected("network") },
  ],
  [
    "the store is away, and the limit rejects then",
    "/denying",
    async () => 0,
    {
      by: "denying",
      status: 503,
      result: "failed-closed",
      detail: /^The request's limits cannot be checked at the moment\.$/,
      args: ["redis://127.0.0.1:1"],
      why: /127\.0\.0\.1:1/,
      card: /^rejects: the store fails \(onStoreError: deny\)$/,
    },
  ],
  [
    "the store is away, and the fallback's limit is used up",
    "/falling",
    used("/falling"),
    { by: "falling", result: "fallback-limited", args: ["redis://127.0.0.1:1"], why: /127\.0\.0\.1:1/ },
  ],
])("%s: the response, event, log, metric, request card and `floodgate why` say it", async (_, path, before, said) => {
  const { status = 429, detail = soon, result = "limited", by, headers, args = [] } = said;
  await before();
  const earlier = await outcomes();
  requests.length = 0;
  lines.length = 0;
  const response = await send(path, headers);
  expect(response.status).toBe(status);
  expect(response.body.detail).toMatch(detail);
  expect(response.body["violated-policies"] ?? [by]).toEqual([by]);
  expect(requests.map(({ type, result: got, name, rejected: isRejected }) => ({ type, got, name, isRejected }))).toEqual([
    { type: "request", got: result, name: by, isRejected: true },
  ]);
  const [line] = lines;
  expect(lines.map(({ result: got, rule, method }) => [got, rule, method])).toEqual([[result, by, "GET"]]);
  // A request without a key or with an ambiguous path is rejected before rules are checked.
  const own = line?.rules.find(({ rule }) => rule === by) ?? { result, key: "", retryAfterMs: line?.retryAfterMs };
  expect([own.result, typeof own.key, own.retryAfterMs]).toEqual([result, "string", line?.retryAfterMs]);
  expect(await outcomes()).toEqual({ ...earlier, [result]: (earlier[result] ?? 0) + 1 });
  expect(args[0]?.startsWith("redis:") ? await why(path, [], args[0]) : await why(path, args)).toMatch(said.why);
  expect(await card(path, by, headers?.["x-plan"])).toMatch(said.card ?? /^(rejects|no key|servers read)/);
  end();
});

it("a shadow rule rejects nothing, and `floodgate why` says what it would do", async () => {
  await send("/trial");
  expect((await send("/trial")).status).toBe(200);
  expect(await why("/trial")).toMatch(/^would pass[\s\S]*would reject \(shadow\), for/);
});

it("a limit whose store is away rejects nothing by default, and the request card says so", async () => {
  expect((await send("/opening")).status).toBe(200);
  expect(await card("/opening", "opening", undefined)).toBe("passes: the store fails (onStoreError: allow)");
});

it("the dashboard counts the same requests as the metric, each once", { timeout: 120_000 }, async () => {
  const { allowed: _, ...metric } = await outcomes();
  expect(Object.keys(metric).length).toBeGreaterThan(6);
  // It shows a second when it has ended: if an earlier test has taken long, the clock of this one, which began again, has to reach that time.
  // It answers browsers on this machine, which keep their connections alive.
  await expect
    .poll(
      async () => {
        const { body } = await client.get("/dashboard/data/overview").set("connection", "keep-alive");
        const { allowed: __, ...counts } = body.totals.find(({ rule }: { rule: string }) => rule === wholeRequests).counts;
        return counts;
      },
      { timeout: 110_000 },
    )
    .toEqual(metric);
});
