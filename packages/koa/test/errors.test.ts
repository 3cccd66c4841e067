import { fixedWindow } from "@floodgate/core";
import Router from "@koa/router";
import { describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";
import { appOf, ok, serving, statuses, versions } from "./serving.js";

const policy = fixedWindow({ limit: 100, window: "365d" });

describe.each(versions)("an error in %s", (_, koa) => {
  it("keeps the rate limit headers and its own headers, and no others", async () => {
    const { app } = appOf(koa);
    app.use((ctx, next) => {
      ctx.set({ "X-Other": "yes", "Cache-Control": "public" });
      return next();
    });
    app.use(rateLimit({ policy, headers: ["draft-6", "legacy"] }));
    app.use((ctx) => ctx.throw(401, { headers: { "WWW-Authenticate": "Basic" } }));
    await serving(app, async (ask) => {
      const { status, headers } = await ask();
      expect(status).toBe(401);
      expect(headers).toMatchObject({ "www-authenticate": "Basic", "ratelimit-remaining": "99", "x-ratelimit-limit": "100" });
      expect([headers["x-other"], headers["cache-control"]]).toEqual([undefined, undefined]);
    });
  });

  it("that is thrown for several clients shows no client another's headers", async () => {
    const { app } = appOf(koa);
    const gone = Object.assign(new Error("gone"), { status: 410, headers: { "X-Gone": "yes" } });
    const fail = (): never => {
      throw gone;
    };
    const router = new Router();
    router.get("/limited", rateLimit({ policy }), fail).get("/free", fail);
    app.use(router.routes());
    await serving(app, async (ask) => {
      const answers = await Promise.all(["/limited", "/free", "/limited", "/free"].map((target) => ask(target)));
      expect(answers.map(({ headers }) => headers["ratelimit"]?.toString().replace(/;t=.*/, ""))).toEqual([
        '"default";r=99',
        undefined,
        '"default";r=98',
        undefined,
      ]);
      expect(answers.map(({ headers }) => headers["x-gone"])).toEqual(["yes", "yes", "yes", "yes"]);
    });
  });

  it("that is not an Error object still gets the rate limit headers", async () => {
    const { app } = appOf(koa);
    app.use(rateLimit({ policy })).use(() => {
      throw "text";
    });
    await serving(app, async (ask) => {
      const { status, headers } = await ask();
      expect([status, headers["ratelimit"]]).toEqual([500, expect.stringMatching(/r=99/)]);
    });
  });

  it("that an outer middleware handles keeps all headers", async () => {
    const { app, errors } = appOf(koa);
    let names: string[] = [];
    app.use(async (ctx, next) => {
      ctx.set("X-Other", "yes");
      try {
        await next();
      } catch (error) {
        ctx.app.emit("error", error, ctx);
        ctx.status = 418;
        ctx.body = "caught";
      }
      await undefined;
      names = ctx.res.getHeaderNames();
    });
    app.use(rateLimit({ policy })).use((ctx) => ctx.throw(400, "bad"));
    await serving(app, async (ask) => {
      const { status, headers } = await ask();
      expect([status, headers["x-other"], headers["ratelimit"]]).toEqual([418, "yes", expect.stringMatching(/r=99/)]);
      expect(errors).toEqual(["bad"]);
      expect(names).toEqual(expect.arrayContaining(["x-other", "ratelimit", "ratelimit-policy"]));
    });
  });

  it("that an app emits without a request is ignored by the limit", async () => {
    const { app, errors } = appOf(koa);
    app.use(rateLimit({ policy })).use(ok);
    await serving(app, async (ask) => {
      await ask();
      app.emit("error", new Error("elsewhere"));
      expect(errors).toEqual(["elsewhere"]);
    });
  });

  it("reaches the app's error event once, and the app's logging does not change", async () => {
    const app = new koa();
    const limits = ["a", "b"].map((name) => rateLimit({ name, policy }));
    for (const limit of limits) app.use(limit);
    app.use(ok);
    await serving(app, async (ask) => {
      await statuses(ask, "/", "/");
      expect(app.listeners("error")).toHaveLength(2);
    });
  });
});
