import { fixedWindow } from "@floodgate/core";
import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { describe, expect, it } from "vitest";
import { type HonoRateLimitOptions, rateLimit } from "../src/index.js";

// The ways in which `onLimited` may respond in Hono, and what the client gets.

const policy = fixedWindow({ limit: 1, window: "365d" });
type OnLimited = NonNullable<HonoRateLimitOptions<object>["onLimited"]>;

/** An app with an exhausted limit, and its response to the next request. */
async function limitedBy(onLimited: OnLimited, prepare: (app: Hono) => void = () => undefined): Promise<Response> {
  const app = new Hono();
  prepare(app);
  app.use(rateLimit({ policy, key: "global", headers: ["standard", "legacy"], onLimited }));
  app.get("/", (c) => c.text("served"));
  await app.request("/");
  return await app.request("/");
}

function expectHeaders({ headers }: Response): void {
  expect(headers.get("ratelimit")).toMatch(/^"default";r=0;t=\d+$/);
  expect(headers.get("ratelimit-policy")).toBe('"default";q=1;w=31536000');
  expect(headers.get("x-ratelimit-limit")).toBe("1");
  expect(headers.get("retry-after")).toMatch(/^\d+$/);
  expect(headers.get("cache-control")).toBe("no-store");
}

describe("onLimited answers", () => {
  it.each<[string, OnLimited, number, string]>([
    ["a response from c, 429 by default", (c) => c.text("slow"), 429, "slow"],
    ["a response that c makes with a status", (c) => c.json({ slow: true }, 503), 503, '{"slow":true}'],
    ["a redirect", (c) => c.redirect("/plans"), 302, ""],
    ["a raw response", () => new Response("raw", { status: 429 }), 429, "raw"],
    ["an immutable one", () => fetch("data:text/plain,raw"), 200, "raw"],
    ["c.res itself", (c) => Object.assign(c, { res: c.text("set") }).res, 429, "set"],
    ["a page that is missing", (c) => c.notFound(), 404, "404 Not Found"],
    ["later", async (c) => Promise.resolve(c.text("later")), 429, "later"],
  ])("%s", async (_, onLimited, status, text) => {
    const response = await limitedBy(onLimited);
    expect([response.status, await response.text()]).toEqual([status, text]);
    expectHeaders(response);
  });

  it.each<[string, OnLimited]>([
    ["at once", () => undefined],
    ["later", async () => undefined],
  ])("nothing, %s: the problem it is", async (_, onLimited) => {
    const response = await limitedBy(onLimited);
    expect([response.status, response.headers.get("content-type")]).toEqual([429, "application/problem+json"]);
    expectHeaders(response);
  });

  it("a header that replaces the limit's own", async () => {
    const response = await limitedBy((c) => c.text("slow", 429, { "Retry-After": "7" }));
    expect(response.headers.get("retry-after")).toBe("7");
  });

  it("with the decision, also as context variable", async () => {
    const response = await limitedBy((c, decision) => c.json([decision?.name, c.get("rateLimit")?.allowed]));
    expect(await response.json()).toEqual(["default", false]);
  });
});

describe("onLimited throws", () => {
  const exceptions: [string, OnLimited, number, string][] = [
    [
      "an HTTPException",
      () => {
        throw new HTTPException(429, { message: "slow" });
      },
      429,
      "slow",
    ],
    ["one with a response, later", async () => Promise.reject(new HTTPException(429, { res: new Response("own") })), 429, "own"],
    [
      "an error",
      () => {
        throw new Error("fault");
      },
      500,
      "handled",
    ],
  ];
  const handlings: [string, (app: Hono) => void][] = [
    [
      "the exception's own response",
      (app) => app.onError((error) => (error instanceof HTTPException ? error.getResponse() : new Response("handled", { status: 500 }))),
    ],
    [
      "another response from c",
      (app) =>
        app.onError((error, c) =>
          error instanceof HTTPException ? c.newResponse(error.getResponse().body, error.status) : c.text("handled", 500),
        ),
    ],
  ];

  for (const [what, onLimited, status, text] of exceptions) {
    it.each(handlings)(`${what}: onError answers %s, and the headers are there`, async (_, handle) => {
      const response = await limitedBy(onLimited, handle);
      expect([response.status, await response.text()]).toEqual([status, text]);
      expectHeaders(response);
    });
  }

  it("an HTTPException: Hono's error handler responds with the headers, also of a single limit", async () => {
    const onLimited: OnLimited = () => {
      throw new HTTPException(429, { message: "slow" });
    };
    const alone = new Hono().use(rateLimit({ policy, key: "global", headers: ["standard", "legacy"], onLimited }));
    await alone.request("/");
    for (const response of [await limitedBy(onLimited), await alone.request("/")]) {
      expect([response.status, await response.text()]).toEqual([429, "slow"]);
      expectHeaders(response);
    }
  });

  it("the same exception object repeatedly, without mixing headers of different requests", async () => {
    const exception = new HTTPException(429, { message: "slow" });
    const app = new Hono().onError((error) => (error as HTTPException).getResponse());
    const onLimited: OnLimited = () => {
      throw exception;
    };
    app.get("/", rateLimit({ policy, key: "header:x-user", onLimited }), (c) => c.text("served"));
    const as = (user: string) => app.request("/", { headers: { "x-user": user } });
    await Promise.all([as("ann"), as("bob")]);
    for (const response of await Promise.all([as("ann"), as("bob"), as("ann")])) {
      expect(response.headers.get("ratelimit")).toMatch(/^"default";r=0;t=\d+$/);
    }
    expect([...exception.getResponse().headers.keys()]).toEqual(["content-type"]);
  });
});

it("the 429 has the headers that earlier middlewares prepared, and they see it", async () => {
  let seen: string | null = null;
  const prepare = (app: Hono): void => {
    app.use(async (c: Context, next) => {
      c.header("x-request-id", "42");
      await next();
      seen = c.res.headers.get("retry-after");
    });
  };
  const response = await limitedBy((c) => c.text("slow"), prepare);
  expect([response.headers.get("x-request-id"), response.headers.get("retry-after")]).toEqual(["42", seen]);
});

it.each<[unknown, string]>([
  ["Slow down", '"Slow down"'],
  [{ error: "Slow down" }, "an object with error"],
  [429, "429"],
  ["", '""'],
  [0, "0"],
  [false, "false"],
])("onLimited that answers %j is an error that says what to write, and the limit holds", async (answered, shown) => {
  const errors: unknown[] = [];
  const response = await limitedBy((() => answered) as never, (app) =>
    app.onError((error, c) => {
      errors.push(error);
      return c.text("failed", 500);
    }),
  );
  expect([response.status, await response.text()]).toEqual([500, "failed"]);
  const message = `rateLimit: \`onLimited\` must answer a Response, but answered ${shown}. Write onLimited: (c) => c.text("Slow down").`;
  expect(errors).toEqual([expect.objectContaining({ code: "FLOODGATE_INVALID_ANSWER", message })]);
});

it("a request of a test has no address, which the error says, with what to write", async () => {
  const app = new Hono();
  const errors: Error[] = [];
  app.onError((error, c) => {
    errors.push(error);
    return c.text("failed", 500);
  });
  app.use(rateLimit({ policy }));
  app.get("/", (c) => c.text("served"));
  expect((await app.request("/")).status).toBe(500);
  expect(errors[0]?.message).toContain('app.request("/", {}, { incoming: { socket: { remoteAddress: "192.0.2.1" } } })');
  const env = { incoming: { socket: { remoteAddress: "192.0.2.1" } } };
  expect((await app.request("/", {}, env)).status).toBe(200);
});
