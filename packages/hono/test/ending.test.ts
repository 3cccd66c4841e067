import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fixedWindow, type Store, tokenBucket } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { serve } from "@hono/node-server";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { compress } from "hono/compress";
import { describe, expect, it, vi } from "vitest";
import { rateLimit } from "../src/index.js";

interface Ended {
  readonly response: Response;
  /** The reported statuses. */
  readonly statuses: number[];
}

/** An app whose limit uses the status, on a runtime that does not report when a response was sent. */
async function answered(handler: MiddlewareHandler, outer: MiddlewareHandler[] = [], init: RequestInit = {}): Promise<Ended> {
  const statuses: number[] = [];
  const policy = fixedWindow({ limit: 9, window: "365d" });
  const limit = rateLimit({ policy, key: "global", refundWhen: (status) => statuses.push(status) < 0 });
  const app = new Hono().onError((_, c) => c.text("no", 500));
  app.use(...outer, async (_, next) => next()).get("/", limit, handler);
  const response = await app.request("/", { headers: { "accept-encoding": "gzip" }, ...init });
  return { response, statuses };
}

/** A streamed body, and the reason with which its reader cancelled it. */
function written(): { body: ReadableStream; write: (text: string) => void; end: () => void; fail: () => void; cancelled: unknown[] } {
  let controller = {} as ReadableStreamDefaultController;
  const cancelled: unknown[] = [];
  const body = new ReadableStream({
    start: (one) => {
      controller = one;
    },
    cancel: (reason) => void cancelled.push(reason),
  });
  return {
    body,
    write: (text) => controller.enqueue(new TextEncoder().encode(text)),
    end: () => controller.close(),
    fail: () => controller.error(new Error("stream")),
    cancelled,
  };
}

it("a response is judged in the async context of its request", async () => {
  const context = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const app = new Hono();
  app.use((_c, next) => context.run("here", next));
  app.use(rateLimit({ limit: 9, window: "365d", key: "global", refundWhen: () => seen.push(context.getStore()) < 0 }));
  app.get("/", (c) => c.text("ok"));
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  try {
    await once(server, "listening");
    await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)).text();
    await expect.poll(() => seen).toEqual(["here"]);
    await (await app.request("/")).text();
    await expect.poll(() => seen).toEqual(["here", "here"]);
  } finally {
    server.close();
  }
});

const ended = ({ statuses }: Ended) => vi.waitUntil(() => statuses.length > 0, { interval: 1 });

describe("on runtimes that do not report when a response was sent, its end", () => {
  it.each<[string, MiddlewareHandler, number]>([
    ["is that of its body", async (c) => c.text("ok", 202), 202],
    ["is that of an empty body", async (c) => c.text("", 203), 203],
    ["is immediate without a body", async () => new Response(null, { status: 204 }), 204],
    ["is immediate for Response.error()", async () => Response.error(), 0],
    ["is that of an error's body", () => Promise.reject(new Error("handler")), 500],
  ])("%s", async (_, handler, status) => {
    const app = await answered(handler);
    await app.response.text();
    await ended(app);
    expect(app.statuses).toEqual([status]);
  });

  it("is immediate without a response, after the handler threw a non-error", async () => {
    const statuses: number[] = [];
    const policy = fixedWindow({ limit: 9, window: "1m" });
    const limit = rateLimit({ policy, key: "global", refundWhen: (status) => statuses.push(status) < 0 });
    const app = new Hono().get("/", limit, () => Promise.reject("text"));
    await expect(app.request("/")).rejects.toBe("text");
    expect(statuses).toEqual([500]);
  });

  it("is the end of a stream, which is passed on chunk by chunk", async () => {
    const { body, write, end } = written();
    const { response, statuses } = await answered(async (c) => c.body(body, 201));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    for (const text of ["one", "two", "three"]) {
      write(text);
      expect(new TextDecoder().decode((await reader.read()).value)).toBe(text);
    }
    expect(statuses).toEqual([]);
    end();
    expect((await reader.read()).done).toBe(true);
    await ended({ response, statuses });
    expect(statuses).toEqual([201]);
  });

  it("is 499 if the client disconnects during a stream, which is cancelled", async () => {
    const { body, write, cancelled } = written();
    const app = await answered(async (c) => c.body(body));
    write("one");
    await app.response.body?.cancel("gone");
    await ended(app);
    expect([app.statuses, cancelled]).toEqual([[499], ["gone"]]);
  });

  it("is reported as 499 once if the client disconnects and reading stops", async () => {
    const { body, write, end } = written();
    const client = new AbortController();
    const { response, statuses } = await answered(async (c) => c.body(body), [], { signal: client.signal });
    write("one");
    write("two");
    client.abort();
    expect(statuses).toEqual([499]);
    end();
    await response.text();
    expect(statuses).toEqual([499]);
  });

  it("is 499 if the stream fails, and the client gets the failure", async () => {
    const { body, write, fail } = written();
    const app = await answered(async (c) => c.body(body));
    write("one");
    fail();
    await expect(app.response.text()).rejects.toThrow("stream");
    await ended(app);
    expect(app.statuses).toEqual([499]);
  });

  it("is 499 if the client disconnects before there is a response", async () => {
    const { statuses } = await answered(async (c) => c.text("late"), [], { signal: AbortSignal.abort() });
    expect(statuses).toEqual([499]);
  });

  it("is immediate for HEAD, whose body is not read", async () => {
    const { body } = written();
    const { response, statuses } = await answered(async (c) => c.body(body), [], { method: "HEAD" });
    expect([response.status, response.body, statuses]).toEqual([200, null, [200]]);
  });

  it("does not change status, headers or cookies, also of an immutable response", async () => {
    const cookies = (c: Context): void => {
      c.header("set-cookie", "a=1", { append: true });
      c.header("set-cookie", "b=2", { append: true });
    };
    const made = await answered(async (c) => {
      cookies(c);
      return c.json({ made: true }, 201, { etag: '"1"' });
    });
    expect([made.response.status, await made.response.json()]).toEqual([201, { made: true }]);
    expect(made.response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(made.response.headers.get("etag")).toBe('"1"');
    expect(made.response.headers.get("ratelimit")).toMatch(/^"default";r=8;/);
    const fetched = await answered(() => fetch("data:text/css,b"));
    expect([fetched.response.headers.get("content-type"), await fetched.response.text()]).toEqual(["text/css", "b"]);
    await ended(fetched);
  });

  it("is the same if an outer middleware transforms the body", async () => {
    const { body, write, end } = written();
    const app = await answered(async (c) => c.body(body, 200, { "content-type": "text/plain" }), [compress({ threshold: 0 })]);
    expect(app.response.headers.get("content-encoding")).toBe("gzip");
    const text = new Response(app.response.body?.pipeThrough(new DecompressionStream("gzip"))).text();
    write("one");
    write("two");
    expect(app.statuses).toEqual([]);
    end();
    expect(await text).toBe("onetwo");
    await ended(app);
    expect(app.statuses).toEqual([200]);
  });

  it("is reported even if an outer middleware replaces the response", async () => {
    const replace: MiddlewareHandler = async (c, next) => {
      await next();
      c.res = new Response("not here", { status: 418 });
    };
    const app = await answered(async (c) => c.text("missing", 404), [replace]);
    expect(await app.response.text()).toBe("not here");
    await ended(app);
    expect(app.statuses).toEqual([404]);
  });

  it("is reported once to each of several limits", async () => {
    const statuses: string[] = [];
    const named = (name: string): MiddlewareHandler =>
      rateLimit({ name, limit: 9, window: "365d", key: "global", refundWhen: () => statuses.push(name) < 0 });
    const response = await new Hono().get("/", named("outer"), named("inner"), (c) => c.text("ok")).request("/");
    expect(await response.text()).toBe("ok");
    await vi.waitUntil(() => statuses.length > 1, { interval: 1 });
    expect(statuses.sort()).toEqual(["inner", "outer"]);
  });
});

it("settle charges a cost that is counted while the response streams", async () => {
  const app = new Hono<{ Variables: { tokens: number } }>();
  const policy = tokenBucket({ capacity: 1000, refill: 1, every: "365d" });
  const settled = new Promise((resolve) => {
    const limit = rateLimit({
      policy,
      key: "global",
      cost: 10,
      settle: (c: Context<{ Variables: { tokens: number } }>) => c.get("tokens"),
      onEvent: (event) => event.type === "settled" && resolve(event.cost),
    });
    app.get("/", limit, (c) => {
      async function* chunks(): AsyncGenerator<string> {
        for (let i = 1; i <= 10; i++) {
          c.set("tokens", i * 50);
          yield "50 tokens";
        }
      }
      return c.body(ReadableStream.from(chunks()).pipeThrough(new TextEncoderStream()));
    });
  });
  expect(await (await app.request("/")).text()).toHaveLength(90);
  expect(await settled).toBe(500);
});

describe("on runtimes that kill unawaited work", () => {
  it("settlements are passed to waitUntil", async () => {
    const waitedFor: Promise<unknown>[] = [];
    const runtime = {
      waitUntil: (work: Promise<unknown>) => void waitedFor.push(work),
      passThroughOnException: () => undefined,
      props: {},
    };
    const statuses: number[] = [];
    const memory = memoryStore();
    const store: Store<"async"> = {
      mode: "async",
      consume: async (limit, key, cost) => memory.consume(limit, key, cost),
      peek: async (limit, key) => memory.peek(limit, key),
      consumeAll: async (checks) => memory.consumeAll(checks),
      settle: async (_limit, _key, _decision, cost) => sleep(5).then(() => statuses.push(cost)),
      reset: async (limit, key) => memory.reset(limit, key),
      block: async (...blocked) => memory.block(...blocked),
      unblock: async (name, key) => memory.unblock(name, key),
      keyState: async (limit, key) => memory.keyState(limit, key),
    };
    const policy = tokenBucket({ capacity: 1000, refill: 1, every: "365d" });
    const limit = rateLimit({ policy, store, key: "global", cost: 10, settle: async () => 25 });
    const app = new Hono().get("/", limit, (c) => c.text("ok"));

    const response = await app.request("/", {}, {}, runtime);
    expect(waitedFor).toHaveLength(1);
    expect(await response.text()).toBe("ok");
    await Promise.all(waitedFor);
    expect(statuses).toEqual([25]);
  });
});
