import { once } from "node:events";
import { connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { fixedWindow } from "@floodgate/core";
import Router from "@koa/router";
import mount from "koa-mount";
import { describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";
import { ok, versions } from "./serving.js";

describe.each(versions)("over HTTP/2, %s", (_, koa) => {
  it.each([
    ["post", "/v1/api/login"],
    ["PoSt", "/v1/api/login"],
    ["POST", "/v1/api/login\xa0"],
    ["POST", "/v1/api/login#"],
    ["POST", "/v1/api/login\\#"],
  ])("no spelling of the method or the path gets around a rule: %s %j", async (method, path) => {
    const match = { method: "POST", path: "/v1/api/login" };
    const limit = rateLimit({ rules: [{ name: "login", policy: fixedWindow({ limit: 1, window: "365d" }), match }] });
    const router = new Router().post("/login", limit as never, ok as never);
    const inner = new koa().use(router.routes() as never);
    const app = new koa().use(mount("/v1", mount("/api", inner) as never));
    const server = createServer(app.callback()).listen(0, "127.0.0.1");
    await once(server, "listening");
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    try {
      const statuses: unknown[] = [];
      for (let i = 0; i < 2; i++) {
        const stream = session.request({ ":method": method, ":path": path });
        const [headers] = await once(stream, "response");
        statuses.push(headers[":status"]);
        stream.resume();
        await once(stream, "close");
      }
      // No spelling without a route may reach one.
      expect(statuses).toEqual(statuses[0] === 404 ? [404, 404] : [200, 429]);
    } finally {
      session.close();
      server.close();
    }
  });
});
