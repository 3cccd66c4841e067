import { once } from "node:events";
import { createServer, IncomingMessage, type RequestListener, request, ServerResponse } from "node:http";
import { type AddressInfo, Socket } from "node:net";
import middie from "@fastify/middie";
import connect from "connect";
import fastify from "fastify";
import polka from "polka";
import restana from "restana";
import { describe, expect, it } from "vitest";
import { decisionOf, fixedWindow, type NodeRequest, type RateLimitMiddleware, rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 2, window: "365d" });
type Next = (error?: unknown) => void;
const hello = (request: IncomingMessage, response: ServerResponse) => response.end(`${decisionOf(request)?.remaining} left`);

/** An app with a limit on all requests, and one below `/v1`, before the handler of `/v1/login`. */
type AppOf = (all: RateLimitMiddleware, below: RateLimitMiddleware) => RequestListener | Promise<RequestListener>;

const servers: Record<string, AppOf> = {
  connect(all, below) {
    const app = connect();
    app.use(all).use("/v1", below);
    app.use("/v1/login", hello as never);
    return app;
  },
  polka(all, below) {
    const inner = polka();
    inner.use(below as never).get("/login", hello as never);
    return polka()
      .use(all as never)
      .use("/v1", inner as never).handler as unknown as RequestListener;
  },
  restana(all, below) {
    const app = restana();
    const inner = app.newRouter();
    inner.use(below as never).get("/login", hello as never);
    return app
      .use(all as never)
      .use("/v1", inner as never)
      .callback() as unknown as RequestListener;
  },
  async "@fastify/middie"(all, below) {
    const app = fastify();
    await app.register(middie);
    app.use(all);
    app.use("/v1", below);
    app.get("/v1/login", (request, reply) => reply.send(`${decisionOf(request.raw)?.remaining} left`));
    await app.ready();
    return app.routing;
  },
  "node:http alone": (all, below) => (request, response) => {
    all(request, response, (error) => {
      if (error !== undefined) response.writeHead(500).end();
      else below(request, response, () => hello(request, response));
    });
  },
};

async function serving(listener: RequestListener, run: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe.each(Object.entries(servers))("a limit in %s", (_, appOf) => {
  const free = () => rateLimit({ name: "free", limit: 1000, window: "365d", headers: false });

  it("passes, then answers 429, and its handler finds the decision", async () => {
    await serving(await appOf(rateLimit({ policy }), free()), async (url) => {
      const seen: unknown[] = [];
      for (let i = 0; i < 3; i++) {
        const response = await fetch(`${url}/v1/login?x`);
        seen.push([response.status, response.headers.get("retry-after") !== null, response.status === 200 && (await response.text())]);
      }
      // The decision of the limit that the request passed last.
      expect(seen).toEqual([
        [200, false, "999 left"],
        [200, false, "998 left"],
        [429, true, false],
      ]);
    });
  });

  it("matches rules by the path that the client sent, below a mount too", async () => {
    const below = rateLimit({ rules: [{ name: "login", policy, match: { path: "/v1/login" } }] });
    await serving(await appOf(free(), below), async (url) => {
      const statuses: number[] = [];
      for (const path of ["/v1/login", "/v1/login?x", "/v1/login"]) statuses.push((await fetch(url + path)).status);
      expect(statuses).toEqual([200, 200, 429]);
    });
  });

  it("passes an error of a key function to the server, which answers 500", async () => {
    const failing = rateLimit({
      policy,
      key: () => {
        throw Object.assign(new Error("key"), { status: 500 });
      },
    });
    await serving(await appOf(failing, free()), async (url) => expect((await fetch(`${url}/v1/login`)).status).toBe(500));
  });
});

it("no spelling evades a rule in @fastify/middie if a semicolon begins the query", async () => {
  for (const mount of ["/", "/v1"]) {
    const app = fastify({ routerOptions: { useSemicolonDelimiter: true } as object });
    await app.register(middie);
    app.use(mount, rateLimit({ rules: [{ name: "login", limit: 1000, window: "365d", match: { path: "/v1/login" } }] }));
    app.get("/v1/login", (_request, reply) => reply.send("served"));
    await app.ready();
    await serving(app.routing, async (url) => {
      let served = 0;
      for (const end of ["", "?x", ";", ";a=b", ";/", ";/../x", ";a/b/c", ";?x", ";a/b?x;y", "?x;y", "/;a", ";a#b"]) {
        const { status, headers } = await fetch(`${url}/v1/login${end}`);
        if (status !== 200) continue;
        served++;
        expect([end, headers.get("ratelimit")]).toEqual([end, expect.stringMatching(/^"login"/)]);
      }
      expect(served).toBeGreaterThanOrEqual(8);
    });
  }
});

it.each<[how: string, pathOf: (target: string) => string, told?: object]>([
  ["new URL(url, base)", (target) => new URL(target, "http://h").pathname],
  ["all before the query", (target) => target.replace(/\?.*/, "")],
  ["all before the query, with a `baseUrl`, as moleculer-web", (target) => target.replace(/\?.*/, ""), { baseUrl: "" }],
  ["backslashes as slashes, before `?` and `#`, as restify", (target) => target.replace(/[?#].*/, "").replace(/\\/g, "/")],
  ["what follows a host, as find-my-way", (target) => target.replace(/\?.*/, "").replace(/^https?:\/\/.*?\//, "/")],
  [
    "the same without duplicate slashes",
    (target) =>
      target
        .replace(/\?.*/, "")
        .replace(/^https?:\/\/.*?\//, "/")
        .replace(/\/+/g, "/"),
  ],
])("no target evades a rule in a server whose path is %s", (_, pathOf, told) => {
  const rules = ["/posts", "/users/:id"].map((path) => ({ name: path, policy, key: "global", match: { path } }) as const);
  const limit = rateLimit({ rules });
  const routes = [/^\/posts$/, /^\/users\/[^/]*$/];
  const starts = [
    "",
    "/",
    "//h",
    "///h",
    "/\\h",
    "/\\/h",
    "//a@b",
    "//u:p@h:80",
    "//[::1]",
    "http:///h",
    "http:////h",
    "http://h",
    "x://h",
    "x:///h",
  ];
  let reached = 0;
  for (const target of starts.flatMap((start) =>
    ["/posts", "/posts#", "/users/7", "/users/", "/users/#", "/users/#7?x", "/users\\7", "/users\\", "/users\\?x"].map(
      (end) => start + end,
    ),
  )) {
    const message = Object.assign(new IncomingMessage(new Socket()), { url: target, headers: {}, ...told });
    const response = new ServerResponse(message);
    limit(message, response, () => undefined);
    routes.forEach((route, i) => {
      if (!route.test(pathOf(target))) return;
      reached++;
      expect(`${response.getHeader("ratelimit")}`, target).toContain(`"${rules[i]?.name}"`);
    });
  }
  expect(reached).toBeGreaterThan(3);
});

it("does not cut off an answer that somebody begins while the limit is asked", async () => {
  let answerKey = (_key: string): void => undefined;
  const key = new Promise<string>((resolve) => {
    answerKey = resolve;
  });
  const limit = rateLimit({ policy: fixedWindow({ limit: 0, window: "1m" }), key: () => key });
  const listener: RequestListener = (request, response) => {
    limit(request, response, () => response.end("passed"));
    response.writeHead(503).write("sorry, ");
    answerKey("anybody");
    setImmediate(() => response.end("try later"));
  };
  await serving(listener, async (url) => expect(await (await fetch(url)).text()).toBe("sorry, try later"));
});

it("a rewrite before a limit evades no rule for the rewritten path, in a mount or not", async () => {
  for (const mount of ["/", "/api"]) {
    const app = connect();
    const limit = rateLimit({ rules: [{ name: "login", policy, match: { path: "/api/login" } }] });
    app.use((request: NodeRequest, _: unknown, next: Next) => {
      request.url = request.url?.replace(/^\/en/, "");
      next();
    });
    app.use(mount, limit);
    app.use("/api/login", hello as never);
    await serving(app, async (url) => {
      const statuses: number[] = [];
      for (const path of ["/en/api/login", "/api/login", "/en/api/login?x"]) statuses.push((await fetch(url + path)).status);
      expect(statuses).toEqual([200, 200, 429]);
    });
  }
});

describe("mistakes", () => {
  it.each([
    ["a context of Hono", { req: { raw: {} } }, "hono"],
    ["a request of Fastify", { raw: {}, server: {} }, "fastify"],
    ["an instance of Fastify", { addHook: () => undefined, register: () => undefined }, "fastify"],
    ["a context of Koa", { app: { context: {} }, req: new IncomingMessage(new Socket()), headers: {}, socket: {} }, "koa"],
  ])("%s is an error that says what to import", (what, given, name) => {
    const limit = rateLimit({ policy });
    expect(() => limit(given as never, {} as never, undefined as never)).toThrow(
      `takes a request of Node, but was given ${what}. Write import { rateLimit } from "@floodgate/${name}".`,
    );
  });

  it("a hook of Fastify fails with that error", async () => {
    const app = fastify().addHook("onRequest", rateLimit({ policy }) as never);
    expect((await app.inject("/")).json().message).toMatch(/^This rateLimit takes .*"@floodgate\/fastify"\.$/);
  });

  it("a `decisionName` that requests have already is an error of the request", async () => {
    for (const [decisionName, status] of [
      ["quota", 200],
      ["trailers", 500],
      ["rawHeaders", 500],
    ] as const) {
      const listener = await (servers["node:http alone"] as AppOf)(
        rateLimit({ policy, decisionName }),
        rateLimit({ policy, headers: false }),
      );
      await serving(listener, async (url) => expect((await fetch(url)).status).toBe(status));
    }
  });
});

it("says what to write if it is called without `next`", () => {
  const limit = rateLimit({ policy, key: "global" }) as (...args: unknown[]) => void;
  const request = { headers: {}, socket: {}, method: "GET", url: "/" };
  for (const next of [[], [undefined], [null], [5]]) {
    expect(() => limit(request, {}, ...next)).toThrow(
      expect.objectContaining({
        code: "FLOODGATE_INVALID_OPTION",
        message: expect.stringContaining("Write next: limit(req, res, (error) => ...)."),
      }),
    );
  }
});

it("a WebSocket that closes has the status 101, so that nobody who opens sockets and leaves is refunded as a disconnected client", async () => {
  const statuses: number[] = [];
  const limit = rateLimit({ policy, refundWhen: (status) => statuses.push(status) > 0 && status >= 400 });
  const server = createServer().on("upgrade", (request, socket) => {
    // As express-ws, @fastify/websocket and the engine of Socket.IO do.
    const response = new ServerResponse(request);
    limit(request, response, () => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      socket.resume().once("end", () => socket.destroy());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    const headers = { connection: "upgrade", upgrade: "websocket" };
    const [, socket] = await once(request({ host: "127.0.0.1", port, headers }).end(), "upgrade");
    expect(statuses).toEqual([]);
    socket.destroy();
    await expect.poll(() => statuses).toEqual([101]);
    expect(limit.limiter.peek("127.0.0.1")).toMatchObject({ remaining: 1 });
  } finally {
    server.close();
  }
});
