import { once } from "node:events";
import type { Server } from "node:http";
import { connect as connectHttp2, createServer as createHttp2 } from "node:http2";
import { adapterConformance } from "@floodgate/conformance/adapter";
import { concurrency, fixedWindow, leakyBucket } from "@floodgate/core";
import { createAdaptorServer, type HttpBindings, upgradeWebSocket } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { describe, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { allRuns } from "../../../test/runs.js";
import { heldClients } from "../../conformance/test/held-clients.js";
import { rateLimit } from "../src/index.js";
import { honoAdapter, serving } from "./hono-app.js";

const serverOf = ({ fetch }: Parameters<typeof createAdaptorServer>[0]): Server => createAdaptorServer({ fetch }) as Server;

const http2ServerOf = ({ fetch }: Parameters<typeof createAdaptorServer>[0]): Server =>
  createAdaptorServer({ fetch, createServer: createHttp2 as never }) as Server;

const adapter = honoAdapter("Hono on Node", serverOf, http2ServerOf);
adapterConformance({ describe, it }, adapter, { effort: allRuns ? 1 : 0.1 });
heldClients(adapter);

const policy = fixedWindow({ limit: 1, window: "365d" });

/** A promise, and the function that resolves it. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe("on Node", () => {
  it("a response that the handler sent through Node itself is not touched", async () => {
    const faults = vi.spyOn(console, "error").mockReturnValue();
    const app = new Hono<{ Bindings: HttpBindings }>();
    app.get("/", rateLimit({ policy }), (c) => {
      c.env.outgoing.writeHead(200).end("past Hono");
      return RESPONSE_ALREADY_SENT;
    });
    await serving(serverOf(app), async (url) => {
      expect(await (await fetch(url)).text()).toBe("past Hono");
      expect((await fetch(url)).status).toBe(429);
      expect(faults).not.toHaveBeenCalled();
    }).finally(() => faults.mockRestore());
  });

  it("the bindings may be under c.env.server, beside the app's own", async () => {
    const limit = rateLimit({ policy });
    const app = new Hono().use(limit).get("/", limit, (c) => c.text("ok"));
    await serving(serverOf({ fetch: (request, env) => app.fetch(request, { server: env, DB: {} }) }), async (url) => {
      expect([(await fetch(url)).status, (await fetch(url)).status]).toEqual([200, 429]);
      expect(limit.limiter.peek("127.0.0.1")).toMatchObject({ remaining: 0 });
    });
  });

  it("a WebSocket has its slot until it closes, and one that the app refuses gives it back", async () => {
    const limit = rateLimit({ policy: concurrency({ limit: 2, hold: "30s" }), key: "global" });
    const app = new Hono().use(limit, limit);
    app
      .get(
        "/",
        upgradeWebSocket(() => ({})),
      )
      .get("/no", (c) => c.text("no", 403));
    const webSockets = new WebSocketServer({ noServer: true });
    const websocket = { server: webSockets as never };
    await serving(createAdaptorServer({ fetch: app.fetch, websocket }) as Server, async (url) => {
      const open = async (path = ""): Promise<WebSocket | string> => {
        const socket = new WebSocket(url.replace("http", "ws") + path);
        return await once(socket, "open").then(
          () => socket,
          ({ message }) => message,
        );
      };
      expect(await open("/no")).toContain("403");
      await expect.poll(() => limit.limiter.peek("global")).toMatchObject({ remaining: 2 });
      const [first] = [(await open()) as WebSocket, await open()];
      expect(await open()).toContain("429");
      first.terminate();
      await expect.poll(() => limit.limiter.peek("global")).toMatchObject({ remaining: 1 });
      expect(await open()).toBeInstanceOf(WebSocket);
      for (const client of webSockets.clients) client.terminate();
    });
  });

  it("a key may use a header that a middleware added to the request", async () => {
    const app = new Hono();
    app.use(async (c, next) => {
      c.req.raw.headers.set("x-user", c.req.query("user") ?? "nobody");
      await next();
    });
    app.get("/", rateLimit({ policy, key: "header:x-user" }), (c) => c.text("ok"));
    await serving(serverOf(app), async (url) => {
      const statuses = [];
      for (const user of ["ann", "bob", "ann"])
        statuses.push((await fetch(`${url}/?user=${user}`, { headers: { "x-user": "eve" } })).status);
      expect(statuses).toEqual([200, 200, 429]);
    });
  });

  it("refundWhen receives the final status, even if an outer middleware changed it", async () => {
    const app = new Hono();
    app.use(async (c, next) => {
      await next();
      c.res = new Response("changed", { status: 418 });
    });
    const told = new Promise<number>((resolve) => {
      const refundWhen = (status: number): boolean => {
        resolve(status);
        return false;
      };
      app.get("/", rateLimit({ policy, refundWhen }), (c) => c.text("ok"));
    });
    await serving(serverOf(app), async (url) => {
      expect((await fetch(url)).status).toBe(418);
      expect(await told).toBe(418);
    });
  });

  it("a request whose client disconnected during the key lookup is not held", async () => {
    let served = 0;
    const [asked, gone] = [gate(), gate()];
    const key = async (): Promise<string> => {
      asked.open();
      await gone.opened;
      return "k";
    };
    const limit = rateLimit({ policy: leakyBucket({ capacity: 3, leak: 1, every: "1h" }), key });
    limit.limiter.consume("k");
    const app = new Hono<{ Bindings: HttpBindings }>();
    const answered = new Promise<number>((resolve) => {
      app.use(async (c, next) => {
        c.env.outgoing.once("close", gone.open);
        await next();
        resolve(c.res.status);
      });
    });
    app.get("/", limit, (c) => c.text(`${++served}`));
    await serving(serverOf(app), async (url) => {
      const client = new AbortController();
      const response = fetch(url, { signal: client.signal }).catch(() => "hung up");
      await asked.opened;
      client.abort();
      expect(await response).toBe("hung up");
      expect([await answered, served]).toEqual([499, 0]);
    });
  });

  it("HTTP/2 is limited like HTTP/1", async () => {
    const told: number[] = [];
    const limit = rateLimit({ policy, refundWhen: (status) => told.push(status) < 0 });
    const app = new Hono().get("/", limit, () => new Response("raw"));
    const server = createAdaptorServer({ fetch: app.fetch, createServer: createHttp2 as never });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = connectHttp2(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
    try {
      const seen = [];
      for (let i = 0; i < 2; i++) {
        const stream = client.request({ ":path": "/" });
        const [headers] = await once(stream, "response");
        stream.resume();
        await once(stream, "close");
        seen.push([headers[":status"], String(headers["ratelimit"]).startsWith('"default";r=0;t=')]);
      }
      expect(seen).toEqual([
        [200, true],
        [429, true],
      ]);
      expect(told).toEqual([200]);
    } finally {
      client.close();
      server.close();
    }
  });
});
