import { setTimeout as sleep } from "node:timers/promises";
import { fixedWindow, type Store, tokenBucket } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { compress } from "hono/compress";
import { describe, expect, it, vi } from "vitest";
import { rateLimit } from "../src/index.js";

interface Ended {
  readonly response: Response;
  /** The status of each time that the end was told. */
  readonly told: number[];
}

/** An app whose limit asks for the status, on a runtime that does not tell when a response has been sent. */
async function answered(handler: MiddlewareHandler, outer: MiddlewareHandler[] = [], init: RequestInit = {}): Promise<Ended> {
  const told: number[] = [];
  const policy = fixedWindow({ limit: 9, window: "365d" });
  const limit = rateLimit({ policy, key: "global", refundWhen: (status) => told.push(status) < 0 });
  const app = new Hono().onError((_, c) => c.text("no", 500));
  app.use(...outer, async (_, next) => next()).get("/", limit, handler);
  const response = await app.request("/", { headers: { "accept-encoding": "gzip" }, ...init });
  return { response, told };
}

/** A body that is written piece by piece, and what its reader told it. */
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

const ended = ({ told }: Ended) => vi.waitUntil(() => told.length > 0, { interval: 1 });

describe("where the runtime does not tell when a response has been sent, its end", () => {
  it.each<[string, MiddlewareHandler, number]>([
    ["is that of its body", async (c) => c.text("ok", 202), 202],
    ["is that of a body that is empty", async (c) => c.text("", 203), 203],
    ["is at once where it has no body", async () => new Response(null, { status: 204 }), 204],
    ["is at once where it is a failure of the network", async () => Response.error(), 0],
    ["is that of an error's body", () => Promise.reject(new Error("handler")), 500],
  ])("%s", async (_, handler, status) => {
    const app = await answered(handler);
    await app.response.text();
    await ended(app);
    expect(app.told).toEqual([status]);
  });

  it("is at once where there is none, for the handler threw what is no error", async () => {
    const told: number[] = [];
    const policy = fixedWindow({ limit: 9, window: "1m" });
    const limit = rateLimit({ policy, key: "global", refundWhen: (status) => told.push(status) < 0 });
    const app = new Hono().get("/", limit, () => Promise.reject("text"));
    await expect(app.request("/")).rejects.toBe("text");
    expect(told).toEqual([500]);
  });

  it("is that of a stream, which passes piece by piece", async () => {
    const { body, write, end } = written();
    const { response, told } = await answered(async (c) => c.body(body, 201));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    for (const text of ["one", "two", "three"]) {
      write(text);
      expect(new TextDecoder().decode((await reader.read()).value)).toBe(text);
    }
    expect(told).toEqual([]);
    end();
    expect((await reader.read()).done).toBe(true);
    await ended({ response, told });
    expect(told).toEqual([201]);
  });

  it("is 499 where the client hangs up in the middle of a stream, which is told to stop", async () => {
    const { body, write, cancelled } = written();
    const app = await answered(async (c) => c.body(body));
    write("one");
    await app.response.body?.cancel("gone");
    await ended(app);
    expect([app.told, cancelled]).toEqual([[499], ["gone"]]);
  });

  it("is 499 once where the client hangs up and nobody reads on", async () => {
    const { body, write, end } = written();
    const client = new AbortController();
    const { response, told } = await answered(async (c) => c.body(body), [], { signal: client.signal });
    write("one");
    write("two");
    client.abort();
    expect(told).toEqual([499]);
    end();
    await response.text();
    expect(told).toEqual([499]);
  });

  it("is 499 where the stream fails, which the client hears of", async () => {
    const { body, write, fail } = written();
    const app = await answered(async (c) => c.body(body));
    write("one");
    fail();
    await expect(app.response.text()).rejects.toThrow("stream");
    await ended(app);
    expect(app.told).toEqual([499]);
  });

  it("is 499 where the client has hung up before there is a response", async () => {
    const { told } = await answered(async (c) => c.text("late"), [], { signal: AbortSignal.abort() });
    expect(told).toEqual([499]);
  });

  it("is at once for HEAD, whose body nobody reads", async () => {
    const { body } = written();
    const { response, told } = await answered(async (c) => c.body(body), [], { method: "HEAD" });
    expect([response.status, response.body, told]).toEqual([200, null, [200]]);
  });

  it("leaves status, headers and cookies as they are, also of a response that nobody may change", async () => {
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

  it("is the same where a middleware further out sends the body in another form", async () => {
    const { body, write, end } = written();
    const app = await answered(async (c) => c.body(body, 200, { "content-type": "text/plain" }), [compress({ threshold: 0 })]);
    expect(app.response.headers.get("content-encoding")).toBe("gzip");
    const text = new Response(app.response.body?.pipeThrough(new DecompressionStream("gzip"))).text();
    write("one");
    write("two");
    expect(app.told).toEqual([]);
    end();
    expect(await text).toBe("onetwo");
    await ended(app);
    expect(app.told).toEqual([200]);
  });

  it("comes also where a middleware further out answers another in its place", async () => {
    const replace: MiddlewareHandler = async (c, next) => {
      await next();
      c.res = new Response("not here", { status: 418 });
    };
    const app = await answered(async (c) => c.text("missing", 404), [replace]);
    expect(await app.response.text()).toBe("not here");
    await ended(app);
    expect(app.told).toEqual([404]);
  });

  it("comes once for each of several limits", async () => {
    const told: string[] = [];
    const named = (name: string): MiddlewareHandler =>
      rateLimit({ name, limit: 9, window: "365d", key: "global", refundWhen: () => told.push(name) < 0 });
    const response = await new Hono().get("/", named("outer"), named("inner"), (c) => c.text("ok")).request("/");
    expect(await response.text()).toBe("ok");
    await vi.waitUntil(() => told.length > 1, { interval: 1 });
    expect(told.sort()).toEqual(["inner", "outer"]);
  });
});

it("settle charges what is counted while the response streams", async () => {
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

describe("where a runtime ends what nobody waits for", () => {
  it("it is asked to wait until the store has been told what a response has cost", async () => {
    const waitedFor: Promise<unknown>[] = [];
    const runtime = {
      waitUntil: (work: Promise<unknown>) => void waitedFor.push(work),
      passThroughOnException: () => undefined,
      props: {},
    };
    const told: number[] = [];
    const memory = memoryStore();
    const store: Store<"async"> = {
      mode: "async",
      consume: async (limit, key, cost) => memory.consume(limit, key, cost),
      peek: async (limit, key) => memory.peek(limit, key),
      consumeAll: async (checks) => memory.consumeAll(checks),
      settle: async (_limit, _key, _decision, cost) => sleep(5).then(() => told.push(cost)),
      reset: async (limit, key) => memory.reset(limit, key),
    };
    const policy = tokenBucket({ capacity: 1000, refill: 1, every: "365d" });
    const limit = rateLimit({ policy, store, key: "global", cost: 10, settle: async () => 25 });
    const app = new Hono().get("/", limit, (c) => c.text("ok"));

    const response = await app.request("/", {}, {}, runtime);
    expect(waitedFor).toHaveLength(1);
    expect(await response.text()).toBe("ok");
    await Promise.all(waitedFor);
    expect(told).toEqual([25]);
  });
});
