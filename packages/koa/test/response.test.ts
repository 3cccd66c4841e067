import { AsyncLocalStorage } from "node:async_hooks";
import { fixedWindow } from "@floodgate/core";
import type Koa from "koa";
import { describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";
import { appOf, ok, serving, versions } from "./serving.js";

const policy = fixedWindow({ limit: 1, window: "365d" });

describe.each(versions)("a response of %s", (_, koa) => {
  it("without a body keeps the rate limit headers", async () => {
    const { app } = appOf(koa);
    app.use(rateLimit({ policy })).use((ctx) => {
      ctx.body = null;
    });
    await serving(app, async (ask) => {
      const { status, headers } = await ask();
      expect([status, headers["ratelimit"]]).toEqual([204, expect.stringMatching(/^"default";r=0;t=\d+$/)]);
    });
  });

  it("joins list items to those of an earlier middleware, in one header line or several", async () => {
    const { app } = appOf(koa);
    app.use((ctx, next) => {
      for (const name of ["a", "b"]) ctx.append("RateLimit-Policy", `"${name}";q=1`);
      return next();
    });
    app.use(rateLimit({ name: "c", policy: fixedWindow({ limit: 1, window: "1m" }) })).use(ok);
    await serving(app, async (ask) => {
      const items = (await ask()).headers["ratelimit-policy"] as string;
      expect(items.split(/, ?/)).toEqual(['"a";q=1', '"b";q=1', '"c";q=1;w=60']);
    });
  });

  it("to a limited request is a 429 even if an outer middleware set ctx.respond to false", async () => {
    const { app } = appOf(koa);
    app.use((ctx, next) => {
      ctx.respond = false;
      return next();
    });
    app.use(rateLimit({ policy })).use((ctx) => void ctx.res.writeHead(200).end("raw"));
    await serving(app, async (ask) => {
      expect((await ask()).body).toBe("raw");
      const { status, headers } = await ask();
      expect([status, headers["content-type"]]).toEqual([429, "application/problem+json"]);
    });
  });

  it.each<[string, (ctx: Koa.Context) => unknown, number, string, string]>([
    ["sets a string", (ctx) => Object.assign(ctx, { body: "Slow down" }), 429, "text/plain; charset=utf-8", "Slow down"],
    ["sets an object", (ctx) => Object.assign(ctx, { body: { slow: "down" } }), 429, "application/json; charset=utf-8", '{"slow":"down"}'],
    ["sets a status too", (ctx) => Object.assign(ctx, { status: 503, body: "Later" }), 503, "text/plain; charset=utf-8", "Later"],
    ["sets nothing", () => undefined, 429, "application/problem+json", "quota-exceeded"],
    ["sets only another status", (ctx) => Object.assign(ctx, { status: 503 }), 503, "text/plain; charset=utf-8", "Service Unavailable"],
    ["sets no body on purpose", (ctx) => Object.assign(ctx, { body: null }), 204, undefined as never, ""],
    ["throws", (ctx) => ctx.throw(429, "Slow down"), 429, "text/plain; charset=utf-8", "Slow down"],
    ["redirects", (ctx) => ctx.redirect("/slow"), 302, "text/html; charset=utf-8", "Redirecting to /slow."],
  ])("is onLimited's if it %s, with the rate limit headers", async (_how, onLimited, status, type, body) => {
    const { app } = appOf(koa);
    app.use(rateLimit({ policy, onLimited: (ctx: Koa.Context) => onLimited(ctx) })).use(ok);
    await serving(app, async (ask) => {
      await ask();
      const answer = await ask();
      expect([answer.status, answer.headers["content-type"]]).toEqual([status, type]);
      expect(answer.body).toContain(body);
      expect(answer.headers).toMatchObject({
        ratelimit: expect.stringMatching(/r=0/),
        "retry-after": expect.stringMatching(/^\d+$/),
        "cache-control": "no-store",
      });
    });
  });

  it("is the usual one if onLimited sets nothing, also behind a middleware that has set a body", async () => {
    const { app } = appOf(koa);
    app.use((ctx, next) => Object.assign(ctx, { body: "outer" }) && next());
    app.use(rateLimit({ policy, onLimited: () => undefined })).use(ok);
    await serving(app, async (ask) => {
      await ask();
      expect((await ask()).body).toContain("quota-exceeded");
    });
  });

  it("is judged in the async context of its request", async () => {
    const { app } = appOf(koa);
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    app.use((_ctx, next) => context.run("here", next));
    app.use(rateLimit({ policy, refundWhen: () => seen.push(context.getStore()) < 0 })).use(ok);
    await serving(app, async (ask) => {
      await ask();
      await expect.poll(() => seen).toEqual(["here"]);
    });
  });
});
