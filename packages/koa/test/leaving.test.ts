import { once } from "node:events";
import { request as openRequest } from "node:http";
import { connect, constants, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { fixedWindow, leakyBucket } from "@floodgate/core";
import { describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";
import { appOf, gate, serving, versions } from "./serving.js";

describe.each(versions)("a client that disconnects while it is held, in %s", (_, koa) => {
  it("is not served, and the outer middlewares finish", async () => {
    const { app, errors } = appOf(koa);
    const served: string[] = [];
    const [waiting, ended] = [gate(), gate<number>()];
    const limit = rateLimit({
      policy: leakyBucket({ capacity: 2, leak: 1, every: "1h" }),
      onEvent: ({ type }) => void (type === "delayed" && setImmediate(waiting.open)),
    });
    app.use(async (ctx, next) => {
      await next();
      if (ctx.path === "/gone") ended.open(ctx.status);
    });
    app.use(limit).use((ctx) => {
      served.push(ctx.path);
      ctx.body = "served";
    });
    await serving(app, async (ask, port) => {
      await ask("/first");
      const client = openRequest({ host: "127.0.0.1", port, path: "/gone", agent: false }).end();
      client.on("error", () => undefined);
      await waiting.opened;
      client.destroy();
      expect(await ended.opened).toBe(499);
      limit.close();
      expect([served, errors]).toEqual([["/first"], []]);
    });
  });
});

describe.each(versions)("over HTTP/2, %s", (_, koa) => {
  it.each(["while its handler works", "during its key lookup"])("a request is refunded if its client disconnects %s", async (when) => {
    const { app } = appOf(koa);
    const [reached, go, judged] = [gate(), gate(), gate<number>()];
    const work = async (ctx: { path: string }, where: string): Promise<void> => {
      if (ctx.path !== "/slow" || where !== when) return;
      reached.open();
      await go.opened;
    };
    app.use(
      rateLimit({
        policy: fixedWindow({ limit: 2, window: "365d" }),
        key: async (ctx, { ip }) => {
          await work(ctx, "during its key lookup");
          return ip;
        },
        refundWhen: (status) => {
          judged.open(status);
          return status === 499;
        },
      }),
    );
    app.use(async (ctx) => {
      await work(ctx, "while its handler works");
      ctx.body = "served";
    });
    const server = createServer(app.callback()).listen(0, "127.0.0.1");
    await once(server, "listening");
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const ask = async (): Promise<unknown[]> => {
      const [headers] = await once(session.request({ ":path": "/" }).resume(), "response");
      return [headers[":status"], headers["ratelimit"]?.replace(/;t=.*/, "")];
    };
    try {
      const slow = session.request({ ":path": "/slow" });
      slow.on("error", () => undefined);
      await reached.opened;
      const closed = once(slow, "close");
      slow.close(constants.NGHTTP2_CANCEL);
      await closed;
      // When the server answers a ping, it has seen the disconnect.
      await new Promise((resolve) => session.ping(resolve));
      go.open();
      expect(await judged.opened).toBe(499);
      expect([await ask(), await ask(), await ask()]).toEqual([
        [200, '"default";r=1'],
        [200, '"default";r=0'],
        [429, '"default";r=0'],
      ]);
    } finally {
      session.destroy();
      server.close();
    }
  });
});
