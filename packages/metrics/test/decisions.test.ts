import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { createLimiter, fixedWindow } from "@floodgate/core";
import { rateLimit } from "@floodgate/express";
import { rateLimit as fastifyLimit } from "@floodgate/fastify";
import { rateLimit as fetchLimit } from "@floodgate/fetch";
import { rateLimit as honoLimit } from "@floodgate/hono";
import { rateLimit as koaLimit } from "@floodgate/koa";
import { type DecisionLine, type DecisionLogOptions, decisionLog, explainHeader, openTelemetryLogs } from "@floodgate/metrics/decisions";
import { rateLimit as nodeLimit } from "@floodgate/node";
import { memoryStore } from "@floodgate/store-memory";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { InMemoryLogRecordExporter, LoggerProvider, SimpleLogRecordProcessor } from "@opentelemetry/sdk-logs";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import express from "express";
import { fastify } from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const nowMs = Date.UTC(2026, 0, 1, 0, 0, 30);
const undo: (() => unknown)[] = [];
beforeEach(() => {
  vi.useFakeTimers({ now: nowMs, toFake: ["Date"] });
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  for (const close of undo.splice(0)) await close();
});

function logged(options?: DecisionLogOptions): DecisionLine[] {
  const lines: DecisionLine[] = [];
  undo.push(decisionLog((line) => lines.push(line), options));
  return lines;
}

const rules = () => ({
  store: memoryStore({ clock: () => nowMs }),
  rules: [
    { name: "api", key: "header:x-user", limit: 9, window: "1m" },
    { name: "posts", match: { method: "POST", path: "/posts" }, key: "header:x-user", policy: fixedWindow({ limit: 1, window: "1m" }) },
    { name: "trial", match: { path: "/posts" }, key: "global", policy: fixedWindow({ limit: 1, window: "1h" }), mode: "shadow" },
    { name: "admin", match: { path: "/admin/*" }, key: "global", policy: fixedWindow({ limit: 5, window: "1m" }) },
    { name: "free", cost: 0, key: "global", policy: fixedWindow({ limit: 5, window: "1m" }) },
  ] as const,
});

/** Serves an app until the end of the test. */
async function serve(listener: RequestListener): Promise<(headers?: Record<string, string>) => Promise<Response>> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  undo.push(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/posts`;
  return (headers = {}) => fetch(url, { method: "POST", headers: { "x-user": "user-4242", connection: "close", ...headers } });
}

function expressApp(): RequestListener {
  const limit = rateLimit(rules());
  undo.push(() => limit.close());
  const app = express();
  app.post("/posts", limit, (_req, res) => void res.end());
  return app;
}

const frameworks: Record<string, () => Promise<(headers?: Record<string, string>) => Response | Promise<Response>>> = {
  Express: () => serve(expressApp()),
  Koa() {
    const limit = koaLimit(rules());
    undo.push(() => limit.close());
    const app = new Koa().use(limit).use((ctx) => {
      ctx.body = "";
    });
    return serve(app.callback());
  },
  async Fastify() {
    const limit = fastifyLimit(rules());
    const app = fastify();
    await app.register(limit);
    app.post("/posts", async () => "");
    undo.push(() => app.close());
    await app.listen();
    const { port } = app.server.address() as AddressInfo;
    return (headers = {}) =>
      fetch(`http://127.0.0.1:${port}/posts`, { method: "POST", headers: { "x-user": "user-4242", connection: "close", ...headers } });
  },
  Node() {
    const limit = nodeLimit(rules());
    undo.push(() => limit.close());
    return serve((req, res) => limit(req, res, () => res.end()));
  },
  async Fetch() {
    const limit = fetchLimit(rules());
    undo.push(() => limit.close());
    const handler = limit(() => new Response(""));
    return (headers = {}) => handler(new Request("http://test/posts", { method: "POST", headers: { "x-user": "user-4242", ...headers } }));
  },
  async Hono() {
    const limit = honoLimit(rules());
    undo.push(() => limit.close());
    const app = new Hono().use(limit).post("/posts", (c) => c.text(""));
    return (headers = {}) => app.request("/posts", { method: "POST", headers: { "x-user": "user-4242", ...headers } });
  },
};

describe("the decision log", () => {
  it.each([
    ...["", "00", "00-", "00-user@example.com-00f067aa0ba902b7-01", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"],
    ...[`00-${"a".repeat(31)}-00f067aa0ba902b7-01`, `00-${"a".repeat(8000)}`, `00-${"0".repeat(32)}-00f067aa0ba902b7-01`],
  ])("has no trace of a request whose traceparent is %j", async (traceparent) => {
    const lines = logged({ passed: 1 });
    const send = await serve(expressApp());
    await send({ traceparent });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toHaveProperty("traceId");
  });

  it("says of a rejected request which rule decided, what each rule says, and when to come back", async () => {
    const lines = logged({ passed: 0 });
    const send = await serve(expressApp());
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    await send();
    expect((await send({ traceparent })).status).toBe(429);
    const window = { cost: 1, resetAfterMs: 30_000 };
    expect(lines).toEqual([
      {
        time: "2026-01-01T00:00:30.000Z",
        result: "limited",
        rejected: true,
        rule: "posts",
        retryAfterMs: 30_000,
        method: "POST",
        route: "/posts",
        traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
        rules: [
          {
            rule: "api",
            result: "allowed",
            policy: "9 per 1m",
            limit: 9,
            used: 1,
            remaining: 8,
            retryAfterMs: 0,
            cost: 1,
            resetAfterMs: 90_000,
          },
          {
            rule: "posts",
            key: "us…42",
            result: "limited",
            policy: "1 per 1m",
            limit: 1,
            used: 1,
            remaining: 0,
            retryAfterMs: 30_000,
            ...window,
          },
          {
            ...{ rule: "trial", key: "global", result: "shadow-limited", policy: "1 per 1h", cost: 1, limit: 1, used: 1, remaining: 0 },
            ...{ retryAfterMs: 3_570_000, resetAfterMs: 3_570_000 },
          },
        ],
      },
    ]);
  });

  it("has no counts of a rule that was decided without the store", async () => {
    const lines = logged({ passed: 1 });
    undo.push(explainHeader(() => true));
    const down = () => {
      throw new Error("down");
    };
    const store = Object.assign(memoryStore(), { consume: down });
    for (const [onStoreError, result] of [
      ["allow", "failed-open"],
      ["deny", "failed-closed"],
    ] as const) {
      const limit = rateLimit({ name: result, limit: 5, window: "1m", store, onStoreError, onEvent: () => undefined });
      undo.push(() => limit.close());
      const send = await serve(express().use(limit));
      expect((await send()).headers.get("ratelimit-explain")).toMatch(
        new RegExp(`^"${result}";result=${result};decides;key="127.0.0.x";policy="5 per 1m";cost=1;limit=5;retry=\\d$`),
      );
      expect(lines.at(-1)?.rules[0]).toEqual({
        ...{ rule: result, key: "127.0.0.x", result, policy: "5 per 1m", cost: 1, limit: 5, retryAfterMs: expect.any(Number) },
      });
    }
  });

  it("has a share of the requests that pass", () => {
    const lines = logged({ passed: 0.25 });
    const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 9, window: "1m" }), store: memoryStore() });
    undo.push(() => limiter.close());
    for (const random of [0.24, 0.25, 0.9, 0]) {
      vi.spyOn(Math, "random").mockReturnValue(random);
      limiter.consume("ann");
    }
    expect(lines.map(({ result, rules }) => [result, rules[0]?.used])).toEqual([
      ["allowed", 1],
      ["allowed", 4],
    ]);
  });

  it("has all rejected requests up to a rate, and says how many it left out", () => {
    const lines = logged({ passed: 0, rejectedPerSecond: 2 });
    const limiter = createLimiter({ name: "none", policy: fixedWindow({ limit: 1, window: "1m" }), store: memoryStore() });
    undo.push(() => limiter.close());
    for (let i = 0; i < 6; i++) limiter.consume("ann");
    expect(lines.map(({ dropped }) => dropped)).toEqual([undefined, undefined]);
    vi.setSystemTime(nowMs + 1000);
    limiter.consume("ann");
    expect(lines.slice(2).map(({ dropped }) => dropped)).toEqual([3]);
  });

  it("writes lines of JSON to a writable, and drops lines while it is slow", () => {
    let text = "";
    const slow = {
      busy: false,
      write: (line: string) => {
        text += line;
      },
      get writableNeedDrain() {
        return this.busy;
      },
    };
    undo.push(decisionLog(slow, { showKeys: true }));
    const limiter = createLimiter({ name: "never", policy: fixedWindow({ limit: 1, window: "1m" }), store: memoryStore() });
    undo.push(() => limiter.close());
    limiter.consume("user:42", { cost: 2 });
    slow.busy = true;
    limiter.consume("user:42", { cost: 2 });
    slow.busy = false;
    limiter.consume("user:42", { cost: 2 });
    const lines = text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    expect(lines.map(({ retryAfterMs, dropped, rules }) => [retryAfterMs, dropped, rules[0].key])).toEqual([
      [null, undefined, "user:42"],
      [null, 1, "user:42"],
    ]);
  });

  it.each([
    ["no target", undefined, {}],
    ["a share above 1", () => 0, { passed: 2 }],
    ["an unknown option", () => 0, { share: 1 }],
  ])("refuses %s", (_, to, options) => {
    expect(() => decisionLog(to as never, options as never)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^FLOODGATE_/) }),
    );
  });
});

/** Reads a header of what `key` functions get. */
// biome-ignore lint/suspicious/noExplicitAny: requests of several frameworks
function headerOf(request: any): string | undefined {
  if (typeof request.req?.header === "function") return request.req.header("x-support");
  const headers = (request.request?.headers ?? request.headers) as Headers | Record<string, string>;
  return headers instanceof Headers ? (headers.get("x-support") ?? undefined) : headers["x-support"];
}

describe.each(Object.entries(frameworks))("RateLimit-Explain in %s", (_, start) => {
  it("says to callers who are let in what each rule says, or why it was not checked", async () => {
    undo.push(explainHeader((request) => headerOf(request) === "1"));
    const send = await start();
    const support = { "x-support": "1" };
    const passed = await send(support);
    expect([passed.status, passed.headers.get("ratelimit-explain")?.includes('"posts";result=allowed;decides')]).toEqual([200, true]);
    const rejected = await send(support);
    expect(rejected.status).toBe(429);
    expect(rejected.headers.get("ratelimit-explain")?.split(", ")).toEqual([
      '"api";result=allowed;policy="9 per 1m";cost=1;limit=9;used=1;remaining=8;retry=0',
      '"posts";result=limited;decides;key="us...42";policy="1 per 1m";cost=1;limit=1;used=1;remaining=0;retry=30',
      '"trial";result=shadow-limited;key="global";policy="1 per 1h";cost=1;limit=1;used=1;remaining=0;retry=3570',
      '"admin";not=path',
      '"free";not=other',
    ]);
    expect((await send()).headers.has("ratelimit-explain")).toBe(false);
  });
});

it("req.rateLimit.decisions are the decisions of all rules that were checked, also of a rejected request", async () => {
  const limit = rateLimit({
    ...rules(),
    onLimited: (req) => void seen.push(req.rateLimit?.decisions?.map(({ name, allowed }) => [name, allowed])),
  });
  const seen: unknown[] = [];
  undo.push(() => limit.close());
  const app = express().post("/posts", limit, (req, res) => {
    seen.push(req.rateLimit?.decisions?.map(({ name, allowed }) => [name, allowed]));
    res.end(JSON.stringify(req.rateLimit));
  });
  const send = await serve(app);
  expect(await (await send()).json()).not.toHaveProperty("decisions");
  await send();
  expect(seen).toEqual([
    [
      ["api", true],
      ["posts", true],
      ["trial", true],
    ],
    [
      ["api", true],
      ["posts", false],
      ["trial", false],
    ],
  ]);
});

it("openTelemetryLogs emits a record for each line, under the span of the request", () => {
  const exporter = new InMemoryLogRecordExporter();
  const provider = new LoggerProvider({ processors: [new SimpleLogRecordProcessor({ exporter })] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  undo.push(() => context.disable());
  undo.push(decisionLog(openTelemetryLogs(provider.getLogger("floodgate")), { passed: 1 }));
  const limiter = createLimiter({
    name: "api",
    policy: fixedWindow({ limit: 1, window: "1m" }),
    store: memoryStore({ clock: () => nowMs }),
  });
  const span = new BasicTracerProvider().getTracer("test").startSpan("POST /posts");
  context.with(trace.setSpan(context.active(), span), () => {
    limiter.consume("ann");
    limiter.consume("ann");
  });
  limiter.close();
  const records = exporter.getFinishedLogRecords();
  expect(records.map(({ body, severityText }) => [severityText, body])).toEqual([
    ["INFO", "request: allowed by api"],
    ["WARN", "request: limited by api"],
  ]);
  const [, rejected] = records;
  expect(rejected?.spanContext?.traceId).toBe(span.spanContext().traceId);
  expect(rejected?.attributes).toMatchObject({
    "floodgate.result": "limited",
    "floodgate.rejected": true,
    "floodgate.rule": "api",
    "floodgate.retry_after_ms": 30_000,
    "floodgate.rules": [{ rule: "api", key: "a…", result: "limited", limit: 1, used: 1, remaining: 0 }],
  });
  expect(rejected?.attributes).not.toHaveProperty("http.route");
  expect(() => openTelemetryLogs({} as never)).toThrow("openTelemetryLogs takes a logger");
});
