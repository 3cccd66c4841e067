// An app with a dashboard that shares its figures, as a process of its own: node app.mjs <redis port> <framework>
import { createServer } from "node:http";
import { Redis } from "ioredis";

const [port, framework] = process.argv.slice(2);
const redis = new Redis(Number(port), "127.0.0.1", { lazyConnect: true });
redis.on("error", () => undefined);

const { rateLimit } = await import(`@floodgate/${framework.toLowerCase()}`);
const { dashboard } = await import(`@floodgate/dashboard/${framework.toLowerCase()}`);
const page = dashboard({ redis });
const limit = rateLimit({ name: framework, limit: 5, window: "1d", key: () => "all" });
const make = {
  async Express() {
    const { default: express } = await import("express");
    return express()
      .use("/_floodgate", page)
      .use(limit)
      .get("/", (_req, res) => res.send("hello"));
  },
  async Koa() {
    const [{ default: Koa }, { default: mount }] = await Promise.all([import("koa"), import("koa-mount")]);
    const app = new Koa().use(mount("/_floodgate", page)).use(limit);
    app.use((ctx) => {
      ctx.body = "hello";
    });
    return app.callback();
  },
  async Hono() {
    const [{ Hono }, { getRequestListener }] = await Promise.all([import("hono"), import("@hono/node-server")]);
    const app = new Hono().route("/_floodgate", page).use(limit);
    return getRequestListener(app.get("/", (c) => c.text("hello")).fetch);
  },
};
const server = createServer(await make[framework]()).listen(0, "127.0.0.1", () => process.send(server.address().port));
process.on("disconnect", () => process.exit());
