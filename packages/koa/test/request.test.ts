import { fixedWindow } from "@floodgate/core";
import { bodyParser } from "@koa/bodyparser";
import Router from "@koa/router";
import type Koa from "koa";
import mount from "koa-mount";
import { describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";
import { koaReader } from "../src/request.js";
import { appOf, ok, serving, statuses, versions } from "./serving.js";

const policy = fixedWindow({ limit: 1, window: "365d" });

/** A middleware that does something and calls next. */
const first =
  (act: (ctx: Koa.Context) => void): Koa.Middleware =>
  (ctx, next) => {
    act(ctx);
    return next();
  };

describe.each(versions)("the client in %s", (_, koa) => {
  it.each<[string, (app: Koa) => unknown]>([
    ["defined for the app", (app) => Object.defineProperty(app.request, "ip", { get: () => "203.0.113.9" })],
    ["defined on a request", (app) => app.use(first((ctx) => Object.defineProperty(ctx, "ip", { value: "203.0.113.9" })))],
    ["set on a request", (app) => app.use(first((ctx) => Object.assign(ctx.request, { ip: "203.0.113.9" })))],
  ])("an address of the app's own, %s", async (_how, define) => {
    const { app } = appOf(koa);
    define(app);
    const limit = rateLimit({ policy });
    app.use(limit).use(ok);
    await serving(app, async (ask) => {
      expect(await statuses(ask, "/", "/")).toEqual([200, 429]);
      expect([await limit.limiter.peek("203.0.113.9"), await limit.limiter.peek("127.0.0.1")]).toMatchObject([
        { remaining: 0 },
        { remaining: 1 },
      ]);
    });
  });

  it.each<[string, Partial<Koa>, Record<string, string>, string]>([
    ["two proxies", { maxIpsCount: 2 }, { "x-forwarded-for": "6.6.6.6, 192.0.2.1, 192.0.2.2" }, "192.0.2.1"],
    ["a header with one address", { maxIpsCount: 1, proxyIpHeader: "X-Real-IP" }, { "x-real-ip": "192.0.2.1" }, "192.0.2.1"],
    [
      "a header with one address, and other headers with more",
      { maxIpsCount: 1, proxyIpHeader: "X-Real-IP" },
      { "x-real-ip": "192.0.2.1", "x-forwarded-for": "6.6.6.6" },
      "192.0.2.1",
    ],
    ["no proxy in front of this request", { maxIpsCount: 1 }, {}, "127.0.0.1"],
  ])("the address that app.proxy takes with maxIpsCount: %s", async (_how, settings, headers, counted) => {
    const { app } = appOf(koa);
    Object.assign(app, { proxy: true }, settings);
    const limit = rateLimit({ policy });
    app.use(limit).use(ok);
    await serving(app, async (ask) => {
      expect((await ask("/", headers)).status).toBe(200);
      expect(await limit.limiter.peek(counted)).toMatchObject({ remaining: 0 });
    });
  });

  it.each([
    {},
    { maxIpsCount: 0 },
    { maxIpsCount: 0.5 },
    { maxIpsCount: 1000 },
    { maxIpsCount: Number.POSITIVE_INFINITY },
    { proxyIpHeader: "X-Real-IP" },
  ])("is an error if app.proxy is true with %o: the message says what to set", async (settings) => {
    const { app } = appOf(koa);
    const messages: string[] = [];
    app.on("error", (error: Error) => messages.push(error.message));
    Object.assign(app, { proxy: true }, settings);
    app.use(rateLimit({ policy })).use(ok);
    await serving(app, async (ask) => {
      expect(await statuses(ask, "/", "/")).toEqual([500, 500]);
      expect(messages[0]).toMatch(/left-most forwarded address, which anyone can forge.*proxy: true, maxIpsCount: 1/);
    });
  });

  it("can be a user from the parsed body", async () => {
    const { app } = appOf(koa);
    const limit = rateLimit({ policy, key: (ctx, { ip }) => [ip, String(ctx.request.body?.user)] });
    app
      .use(bodyParser({ parsedMethods: ["GET"] }))
      .use(limit)
      .use(ok);
    await serving(app, async (ask) => {
      await ask();
      expect(await limit.limiter.peek(["127.0.0.1", "undefined"])).toMatchObject({ remaining: 0 });
    });
  });
});

describe.each(versions)("the key route in %s", (_, koa) => {
  it.each<[string, (router: Router, limit: Koa.Middleware) => unknown, string[], string]>([
    ["of a text", (router, limit) => router.get("/users/:id", limit, ok), ["/users/1", "/users/2"], "/users/:id"],
    ["of a RegExp", (router, limit) => router.get(/^\/files\/.*$/, limit, ok), ["/files/1", "/files/2/3"], "/^\\/files\\/.*$/"],
    [
      "with a prefix",
      (router, limit) => router.prefix("/v1").get("/users/:id", limit, ok),
      ["/v1/users/1", "/v1/users/2"],
      "/v1/users/:id",
    ],
    [
      "of a router in a router",
      (router, limit) => router.use("/v1", new Router().get("/users/:id", limit, ok).routes()),
      ["/v1/users/1", "/v1/users/2"],
      "/v1/users/:id",
    ],
    ["of one of several", (router, limit) => router.get(["/a/:id", "/b/:id"], limit, ok), ["/b/1", "/b/2"], "/b/:id"],
  ])("is the pattern %s", async (_how, route, targets, pattern) => {
    const { app } = appOf(koa);
    const limit = rateLimit({ policy, key: "route" });
    const router = new Router();
    route(router, limit);
    app.use(router.routes());
    await serving(app, async (ask) => {
      expect(await statuses(ask, ...targets)).toEqual([200, 429]);
      expect(await limit.limiter.peek(pattern)).toMatchObject({ remaining: 0 });
    });
  });

  it.each<[string, (app: Koa, router: Router, limit: Koa.Middleware) => unknown]>([
    ["for all requests", (app, router, limit) => app.use(limit).use(router.routes())],
    ["for all routes of a router", (app, router, limit) => app.use(new Router().use(limit).use(router.routes()).routes())],
    ["under a path of a router", (app, router, limit) => app.use(new Router().use("/users", limit).use(router.routes()).routes())],
    ["in an app that is mounted", (app, router, limit) => app.use(mount("/users", limit)).use(router.routes())],
  ])("is an error of a middleware %s, which knows no route", async (_where, place) => {
    const { app, errors } = appOf(koa);
    place(app, new Router().get("/users/:id", ok), rateLimit({ policy, key: "route" }));
    await serving(app, async (ask) => {
      expect(await statuses(ask, "/users/1")).toEqual([500]);
      expect(errors).toEqual(["FLOODGATE_NO_ROUTE"]);
    });
  });
});

describe.each(versions)("the path of a rule in %s", (_, koa) => {
  const limitOf = (...path: string[]) => rateLimit({ rules: [{ name: "rule", policy, match: { path } }] });
  const rewritten = (from: string, to: string) => first((ctx) => Object.assign(ctx, { url: ctx.url.replace(from, to) }));
  const mounted = (prefix: string, ...middlewares: Koa.Middleware[]): Koa.Middleware => {
    const app = new koa();
    for (const middleware of middlewares) app.use(middleware);
    return mount(prefix, app);
  };

  it("treats a segment with a colon as text", async () => {
    const { app } = appOf(koa);
    app.use(limitOf("/v1/items", "/v1/items/cancel", "/v1/items/:id/reset")).use(ok);
    await serving(app, async (ask) => {
      expect(await statuses(ask, "/v1/items/1:cancel", "/v1/items/1:cancel", "/v1/items/12:30/x")).toEqual([200, 200, 200]);
    });
  });

  const again = limitOf("/items");

  it.each<[string, Koa.Middleware[], string[]]>([
    ["in three nested apps", [mounted("/api", mounted("/v1", limitOf("/api/v1/items"), ok))], ["/api/v1/items", "/api/v1/items/"]],
    ["at the root of a nested app", [mounted("/api", mounted("/v1", limitOf("/api/v1"), ok))], ["/api/v1", "/api/v1/"]],
    ["in an app mounted with a trailing slash", [mounted("/api/", limitOf("/api/items"), ok)], ["/api/items", "/api/items?x"]],
    ["if it repeats its mount path", [mounted("/api", limitOf("/api/api/items"), ok)], ["/api/api/items", "/api/api/items"]],
    ["if a mount path with a trailing slash leaves a URL", [limitOf("/api/login"), mounted("/api/", ok)], ["/api/login", "/api/x:/login"]],
    [
      "if a mount path with a trailing slash leaves a URL with a host",
      [limitOf("/api/login"), mounted("/api/", ok)],
      ["/api/login", "/api/a:pi/login"],
    ],
    [
      "if a mount path with many schemes leaves a URL",
      [limitOf("/a:/b:/c:/d:/e:/login"), mounted("/a:/b:/c:/d:/e:/", ok)],
      ["/a:/b:/c:/d:/e:/login", "/a:/b:/c:/d:/e:/x:/login"],
    ],
    ["for an absolute target", [mounted("/api", limitOf("/api/items"), ok)], ["http://elsewhere.example/api/items?x", "/api/items"]],
    [
      "behind a mounted app that called next",
      [mounted("/api", (_ctx, next) => next()), limitOf("/api/items"), ok],
      ["/api/items", "/api/items"],
    ],
    [
      "behind a nested app that called next",
      [
        mounted(
          "/api",
          mounted("/v1", (_ctx, next) => next()),
          limitOf("/api/v1/items"),
          ok,
        ),
      ],
      ["/api/v1/items", "/api/v1/items"],
    ],
    ["after a rewrite", [rewritten("/v1/", "/"), limitOf("/items"), ok], ["/v1/items", "/items"]],
    ["after a rewrite between two passes of the limit", [again, rewritten("/v1/", "/"), again, ok], ["/v1/items", "/items"]],
    [
      "after a rewrite before a mounted app",
      [rewritten("/old/", "/api/"), mounted("/api", limitOf("/api/items"), ok)],
      ["/old/items", "/api/items"],
    ],
    [
      "after a rewrite in a mounted app",
      [mounted("/api", rewritten("/v1/", "/"), limitOf("/api/items"), ok)],
      ["/api/v1/items", "/api/items"],
    ],
    [
      "after a rewrite before a mounted app that called next",
      [rewritten("/old/", "/api/"), mounted("/api", (_ctx, next) => next()), limitOf("/api/items"), ok],
      ["/old/items", "/api/items"],
    ],
    [
      "after a rewrite behind a mounted app that called next",
      [mounted("/api", (_ctx, next) => next()), first((ctx) => Object.assign(ctx, { path: "/items" })), limitOf("/items"), ok],
      ["/api/items", "/api/items"],
    ],
    [
      "after a middleware that sets a mount path and removes nothing",
      [first((ctx) => Object.assign(ctx, { mountPath: "/api" })), limitOf("/api/items"), ok],
      ["/api/items", "/api/items"],
    ],
  ])("is the full one %s", async (_how, middlewares, targets) => {
    const { app, errors } = appOf(koa);
    for (const middleware of middlewares) app.use(middleware);
    await serving(app, async (ask) => {
      expect(await statuses(ask, ...targets)).toEqual([200, 429]);
      expect(errors).toEqual([]);
    });
  });

  it.each(["/x:", "/x:host", "/x:/..", "/x://host/y"])("has only a few candidates, however many %s a client sends", async (segments) => {
    const { app } = appOf(koa);
    const counts: number[] = [];
    app.use(first((ctx) => counts.push([koaReader.path(ctx)].flat().length))).use(ok);
    await serving(app, async (ask) => {
      expect(await statuses(ask, segments.repeat(1000))).toEqual([200]);
    });
    expect(counts[0]).toBeLessThanOrEqual(12);
  });

  it("is the full one in a mounted app whose context is wrapped in a Proxy", async () => {
    const { app } = appOf(koa);
    const limit = limitOf("/items") as unknown as Koa.Middleware;
    app.use(mounted("/api", (ctx, next) => limit(new Proxy(ctx, {}), next), ok));
    await serving(app, async (ask) => {
      // The first request of an app may have entered its mount before it is followed.
      await ask("/");
      expect(await statuses(ask, "/api/other", "/api/items", "/api/items")).toEqual([200, 200, 200]);
    });
  });

  it("is not the path relative to a mounted app", async () => {
    const { app } = appOf(koa);
    app.use(mounted("/api", limitOf("/items"), mounted("/v1", limitOf("/v1/items"), limitOf("/items"), ok), ok));
    await serving(app, async (ask) => {
      expect(await statuses(ask, "/api/items", "/api/items", "/api/v1/items", "/api/v1/items")).toEqual([200, 200, 200, 200]);
    });
  });
});
