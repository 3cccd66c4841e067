import { fixedWindow, leakyBucket } from "@floodgate/core";
import { Hono, type MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { methodOverride } from "hono/method-override";
import { describe, expect, it, vi } from "vitest";
import { rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 2, window: "365d" });
const slow = leakyBucket({ capacity: 3, leak: 1, every: "1h" });
const ok: MiddlewareHandler = async (c) => c.text("ok");

async function statuses(app: Pick<Hono, "request">, paths: readonly string[], env?: () => object): Promise<number[]> {
  const all: number[] = [];
  for (const path of paths) all.push((await app.request(path, undefined, env?.())).status);
  return all;
}

/** The bindings that a Node server passes with each request. */
const node = () => ({ incoming: { socket: { remoteAddress: "192.0.2.1" } }, outgoing: { once: () => undefined } });

describe("the key route", () => {
  const byRoute = () => rateLimit({ policy: fixedWindow({ limit: 1, window: "365d" }), key: "route" });
  /** The patterns that requests were counted by. */
  async function counted(build: (app: Hono, limit: MiddlewareHandler) => void, paths: readonly string[]): Promise<unknown[]> {
    const keys: unknown[] = [];
    const app = new Hono();
    const limit = rateLimit({ policy, key: (_, { route }) => keys.push(route) && "k" });
    build(app, limit);
    await statuses(app, paths);
    return keys;
  }

  it.each<[string, (app: Hono, limit: MiddlewareHandler) => void, string[], string[]]>([
    ["of a route", (app, limit) => app.get("/users/:id", limit, ok), ["/users/1", "/users/2?x"], ["/users/:id", "/users/:id"]],
    ["of a handler behind a limit for all", (app, limit) => app.use(limit).get("/users/:id", ok), ["/users/1"], ["/users/:id"]],
    [
      "of a handler behind a limit for all routes",
      (app, limit) => app.get("/users/:id", async (_c, next) => next()).use(limit),
      ["/users/1"],
      ["/users/:id"],
    ],
    [
      "of a handler before a catch-all",
      (app, limit) => app.use(limit).get("/users/:id", ok).get("*", ok),
      ["/users/1", "/x"],
      ["/users/:id", "/*"],
    ],
    [
      "of a handler for everything below a path",
      (app, limit) => app.use(limit).get("/files/*", ok).get("*", ok),
      ["/files/a/b"],
      ["/files/*"],
    ],
    [
      "of a handler behind a cache for all routes",
      (app, limit) =>
        app
          .use(limit)
          .get("*", async (_c, next) => next())
          .get("/a/:b", ok),
      ["/a/1"],
      ["/a/:b"],
    ],
    ["with a base path", (app, limit) => app.basePath("/v1").use(limit).get("/users/:id", ok), ["/v1/users/1"], ["/v1/users/:id"]],
    [
      "of a sub-app",
      (app, limit) => app.route("/:tenant", new Hono().use(limit).get("/users/:id", ok)),
      ["/a/users/1"],
      ["/:tenant/users/:id"],
    ],
    [
      "of a sub-app with its own error handler",
      (app, limit) =>
        app.route(
          "/v1",
          new Hono()
            .onError(() => new Response())
            .use(limit)
            .get("/a/:b", ok),
        ),
      ["/v1/a/1"],
      ["/v1/a/:b"],
    ],
    ["with a regular expression", (app, limit) => app.use(limit).get("/files/:path{.*}", ok), ["/files/a/b"], ["/files/:path{.*}"]],
    ["with an optional segment", (app, limit) => app.use(limit).get("/a/:b?", ok), ["/a", "/a/1"], ["/a/:b?", "/a/:b?"]],
    ["of nothing but the limit", (app, limit) => app.use("/api/*", limit), ["/api/1", "/api/2"], ["/api/*", "/api/*"]],
  ])("is the pattern %s", async (_, build, paths, patterns) => {
    expect(await counted(build, paths)).toEqual(patterns);
  });

  it("is the same for all unknown pages, so they are limited", async () => {
    expect(await statuses(new Hono().use(byRoute()), ["/nowhere", "/elsewhere"])).toEqual([404, 429]);
  });
});

describe("an app that is mounted by app.mount()", () => {
  it("has its own context, paths and patterns", async () => {
    const seen: unknown[] = [];
    const inner = new Hono();
    const rules = [
      { name: "inner", policy, match: { path: "/items/:id" } },
      { name: "full", policy, match: { path: "/v1/items/:id" } },
    ];
    inner.get("/items/:id", rateLimit({ rules, key: (_, { route }) => seen.push(route) && "k" }), (c) => c.json(c.get("rateLimit")?.name));
    const app = new Hono().mount("/v1", inner.fetch);
    expect(await (await app.request("/v1/items/7")).json()).toBe("inner");
    expect(seen).toEqual(["/items/:id"]);
  });

  it("adds its list items to those of the outer app", async () => {
    const named = (name: string) => rateLimit({ name, policy, key: "global" });
    const inner = new Hono().use(named("inner")).get("/", ok);
    const app = new Hono().use(named("outer")).mount("/v1", inner.fetch);
    const response = await app.request("/v1");
    expect(response.headers.get("ratelimit-policy")).toBe('"outer";q=2;w=31536000, "inner";q=2;w=31536000');
  });

  it("is charged separately from the outer app by a limit that both use", async () => {
    const limit = rateLimit({ policy: fixedWindow({ limit: 4, window: "365d" }) });
    const app = new Hono().use(limit).mount("/v1", new Hono().use(limit).get("/", ok).fetch);
    expect(await statuses(app, ["/v1", "/v1", "/v1"], node)).toEqual([200, 200, 429]);
  });
});

describe("one request is charged once", () => {
  it("by a limit that it passes again after bodyLimit, which replaces the Request", async () => {
    const limit = rateLimit({ policy, key: "global" });
    const app = new Hono().use(limit, bodyLimit({ maxSize: 10 }));
    app.post("/", limit, ok);
    const post = () => app.request("/", { method: "POST", body: new Blob(["ok"]).stream(), duplex: "half" } as RequestInit);
    expect([(await post()).status, (await post()).status, (await post()).status]).toEqual([200, 200, 429]);
  });

  it("by a limit behind methodOverride, which dispatches it again", async () => {
    const app = new Hono();
    app.use(methodOverride({ app, header: "x-method" }), rateLimit({ policy })).delete("/", ok);
    const remove = () => app.request("/", { method: "POST", headers: { "x-method": "DELETE" } }, node());
    expect([(await remove()).status, (await remove()).status, (await remove()).status]).toEqual([200, 200, 429]);
  });

  it("and requests that the app sends to itself are charged separately", async () => {
    const rules = [{ name: "login", policy, match: { path: "/login" } }];
    const app = new Hono().use(rateLimit({ rules })).get("/login", ok);
    app.get("/batch/*", async (c) => c.json(await statuses(app, ["/login", "/login", "/login"], () => c.env as object)));
    for (const statuses of [
      [200, 200, 429],
      [429, 429, 429],
    ]) {
      expect(await (await app.request("/batch/login", undefined, node())).json()).toEqual(statuses);
    }
  });

  it("and tests may pass the same bindings with all requests", async () => {
    const env = { incoming: { socket: { remoteAddress: "192.0.2.1" } } };
    const app = new Hono().use(rateLimit({ policy }));
    expect(await statuses(app, ["/", "/", "/"], () => env)).toEqual([404, 404, 429]);
  });
});

describe("a request that is held", () => {
  /** An app whose queue releases one request an hour: one was served, one is held. */
  async function queue(): Promise<{
    held: Promise<Response>;
    hangUp: () => void;
    served: () => number;
    limit: ReturnType<typeof rateLimit>;
  }> {
    let served = 0;
    const limit = rateLimit({ policy: slow, key: "global", refundWhen: () => false });
    const app = new Hono().get("/", limit, (c) => c.text(`${++served}`));
    await app.request("/");
    const client = new AbortController();
    const held = app.request(new Request("http://localhost/", { signal: client.signal }));
    return { held: Promise.resolve(held), hangUp: () => client.abort(), served: () => served, limit };
  }

  it("is not served after its client disconnects, and leaves no timer", async () => {
    vi.useFakeTimers();
    try {
      const { held, hangUp, served, limit } = await queue();
      expect(vi.getTimerCount()).toBe(1);
      hangUp();
      expect((await held).status).toBe(499);
      expect(vi.getTimerCount()).toBe(0);
      limit.close();
      expect(served()).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });

  it("is released when the limit is closed", async () => {
    const { held, served, limit } = await queue();
    limit.close();
    expect([(await held).status, served()]).toEqual([200, 2]);
  });

  it("is not held if its client has already disconnected", async () => {
    const limit = rateLimit({ policy: slow, key: async () => "k" });
    const app = new Hono().get("/", limit, ok);
    await app.request("/");
    const gone = await app.request(new Request("http://localhost/", { signal: AbortSignal.abort() }));
    expect(gone.status).toBe(499);
  });
});

describe("with synchronous functions", () => {
  it("a rejection returns its response synchronously", async () => {
    const app = new Hono().use(rateLimit({ policy, key: () => "k", skip: () => false, cost: () => 2 }));
    await app.request("/");
    const limited = app.request("/");
    expect(limited).toBeInstanceOf(Response);
    expect((limited as Response).status).toBe(429);
  });

  it("the handler is called before the middleware returns", () => {
    let served = false;
    const limit = rateLimit({ policy, key: "global" });
    const app = new Hono().get("/", limit, (c) => {
      served = true;
      return c.text("ok");
    });
    void app.request("/");
    expect(served).toBe(true);
  });
});
