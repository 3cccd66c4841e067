import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type Decision, fixedWindow, LimitedError, leakyBucket, memoryStore } from "@floodgate/fastify";
import Fastify, { type FastifyInstance, type FastifyRequest, type InjectOptions } from "fastify";
import { describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 2, window: "365d" });

/** The statuses of `count` injected requests. */
async function statuses(app: FastifyInstance, url: string, count = 3, options: InjectOptions = {}): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push((await app.inject({ url, ...options })).statusCode);
  return all;
}

const ok = async (): Promise<object> => ({ ok: true });

describe("the plugin", () => {
  it("says what to write if it is mounted as a hook", async () => {
    const app = Fastify();
    const limit = rateLimit({ policy });
    app.get("/", { onRequest: limit as never }, ok);
    app.get("/hook", { onRequest: limit.hook }, ok);
    const { statusCode, body } = await app.inject("/");
    expect({ statusCode, ...JSON.parse(body) }).toMatchObject({
      statusCode: 500,
      code: "FLOODGATE_FOREIGN_REQUEST",
      message: expect.stringMatching(
        /^@floodgate\/fastify makes .* Write app\.register\(limit\), or for one route \{ onRequest: limit\.hook \}\.$/,
      ),
    });
    expect(await statuses(app, "/hook")).toEqual([200, 200, 429]);
  });

  it("limits the routes of its scope and below, and no others", async () => {
    const app = Fastify();
    app.register(async (outer) => {
      outer.get("/before", ok);
      outer.register(rateLimit({ policy, key: "route" }));
      outer.get("/after", ok);
      outer.register(async (inner) => void inner.get("/inner", ok));
    });
    app.get("/outside", ok);
    const found = [];
    for (const url of ["/before", "/after", "/inner", "/outside"]) found.push(await statuses(app, url));
    expect(found).toEqual([[200, 200, 429], [200, 200, 429], [200, 200, 429], [200, 200, 200]]); // biome-ignore format: a row
  });

  it("counts requests that no route serves, also with an app's own not-found handler and its hooks", async () => {
    for (const own of [false, true]) {
      const app = Fastify();
      app.register(rateLimit({ policy }));
      if (own)
        app.setNotFoundHandler({ preHandler: (_request, _reply, done) => done() }, (_request, reply) => reply.code(404).send("none"));
      expect(await statuses(app, "/nothing")).toEqual([404, 404, 429]);
    }
  });

  it("counts a request once that its handler passes on to the not-found handler", async () => {
    for (const hook of ["onRequest", "preHandler"] as const) {
      const app = Fastify();
      app.register(rateLimit({ policy, hook }));
      app.get("/", (_request, reply) => reply.callNotFound());
      expect(await statuses(app, "/")).toEqual([404, 404, 429]);
    }
  });

  it("limits a not-found handler alone, by its hook", async () => {
    const app = Fastify();
    const limit = rateLimit({ policy });
    app.setNotFoundHandler({ preHandler: limit.hook }, (_request, reply) => reply.code(404).send("none"));
    app.get("/", ok);
    expect([await statuses(app, "/nothing"), await statuses(app, "/")]).toEqual([
      [404, 404, 429],
      [200, 200, 200],
    ]);
  });

  it("of two scopes, counts a request under each once, also if both register the same limit", async () => {
    const app = Fastify();
    const limit = rateLimit({ policy });
    app.register(limit);
    app.register(async (inner) => {
      inner.register(limit);
      inner.register(rateLimit({ name: "inner", limit: 9, window: "1d" }));
      inner.get("/", ok);
    });
    const { headers } = await app.inject("/");
    expect(headers["ratelimit-policy"]).toBe('"default";q=2;w=31536000, "inner";q=9;w=86400');
    expect(await statuses(app, "/", 2)).toEqual([200, 429]);
  });

  it("shows the decision as request.rateLimit, or under another decisionName", async () => {
    const app = Fastify();
    app.register(rateLimit({ policy }));
    app.register(rateLimit({ policy, decisionName: "quota", name: "quota" }));
    app.get("/", async (request) => [request.rateLimit?.name, (request as FastifyRequest & { quota: Decision }).quota.name]);
    expect((await app.inject("/")).json()).toEqual(["default", "quota"]);
  });

  it("shows the decisions of routes under another decisionName if there is no limit of the app", async () => {
    const app = Fastify();
    await app.register(rateLimit({ global: false, decisionName: "quota" }));
    app.get("/", { config: { rateLimit: { policy } } }, async (request) => (request as FastifyRequest & { quota: Decision }).quota.name);
    expect((await app.inject("/")).body).toBe("GET /");
  });

  it("is refused by Fastify under a decisionName that requests have already", async () => {
    const app = Fastify().decorateRequest("quota", null);
    app.register(rateLimit({ policy, decisionName: "quota" }));
    await expect(app.ready()).rejects.toMatchObject({ code: "FST_ERR_DEC_ALREADY_PRESENT" });
  });

  it("says how it is registered if it is given to register itself", () => {
    expect(() => rateLimit(Fastify() as never)).toThrow(
      'was given an instance of Fastify. Write app.register(rateLimit({ limit: 100, window: "1m" })).',
    );
  });

  it("is closed with the app, and then releases requests that it holds", async () => {
    const app = Fastify();
    const store = memoryStore();
    const limit = rateLimit({ policy: leakyBucket({ capacity: 5, leak: 1, every: "1h" }), store, refundWhen: () => false });
    app.register(limit);
    app.get("/", ok);
    await app.inject("/");
    const held = app.inject("/");
    await expect.poll(() => limit.limiter.peek("127.0.0.1")).toMatchObject({ remaining: 3 });
    await app.close();
    expect((await held).statusCode).toBe(200);
    // Its name is free again.
    rateLimit({ policy, store });
  });
});

describe("options of a route", () => {
  it("replace those of the plugin, with a count of their own; false turns the limit off", async () => {
    const app = Fastify();
    const limit = rateLimit({ policy, key: "global" });
    app.register(limit).after(() => {
      app.get("/", ok);
      app.get("/strict", { config: { rateLimit: { limit: 1, window: "365d" } } }, ok);
      app.get("/free", { config: { rateLimit: false } }, ok);
    });
    expect(await statuses(app, "/strict")).toEqual([200, 429, 429]);
    expect(await statuses(app, "/free")).toEqual([200, 200, 200]);
    expect(await statuses(app, "/")).toEqual([200, 200, 429]);
    expect([...limit.limiters.keys()]).toEqual(["default", "GET /strict"]);
    limit.limiters.get("GET /strict")?.reset("global");
    expect(await statuses(app, "/strict", 2)).toEqual([200, 429]);
  });

  it("apply to a route that is added before the plugin is loaded, in the hook that they say", async () => {
    const app = Fastify();
    app.register(rateLimit({ policy }));
    app.get("/off", { config: { rateLimit: false } }, ok);
    const key = ({ body }: FastifyRequest): string => (body as { user: string }).user;
    app.post("/login", { config: { rateLimit: { policy: fixedWindow({ limit: 1, window: "365d" }), hook: "preHandler", key } } }, ok);
    const login = (user: string): Promise<number[]> => statuses(app, "/login", 2, { method: "POST", payload: { user } });
    expect([await login("ann"), await login("bob"), await statuses(app, "/off")]).toEqual([[200, 429], [200, 429], [200, 200, 200]]); // biome-ignore format: a row
  });

  it("with global: false, apply to their routes alone", async () => {
    const app = Fastify();
    const limit = rateLimit({ global: false, policy });
    await app.register(limit);
    app.get("/", ok);
    app.get("/strict", { config: { rateLimit: {} } }, ok);
    app.get("/hook", { onRequest: limit.hook }, ok);
    expect([await statuses(app, "/"), await statuses(app, "/strict"), await statuses(app, "/nothing")]).toEqual([
      [200, 200, 200],
      [200, 200, 429],
      [404, 404, 404],
    ]);
    expect((await app.inject("/hook")).json()).toMatchObject({ code: "FLOODGATE_MISSING_LIMIT" });
  });

  it("are over those of the innermost plugin", async () => {
    const app = Fastify();
    const store = memoryStore();
    await app.register(rateLimit({ policy, store, key: "header:x-outer" }));
    await app.register(async (inner) => {
      await inner.register(rateLimit({ name: "inner", policy: fixedWindow({ limit: 9, window: "365d" }), store, key: "header:x-inner" }));
      inner.get("/", { config: { rateLimit: { limit: 1, window: "365d" } } }, ok);
    });
    const send = (inner: string): Promise<number[]> => statuses(app, "/", 2, { headers: { "x-inner": inner, "x-outer": "same" } });
    expect([await send("a"), await send("b")]).toEqual([
      [200, 429],
      [200, 429],
    ]);
  });

  it("of GET count its HEAD requests too; a given name is one count for several routes", async () => {
    const app = Fastify();
    await app.register(rateLimit({ global: false }));
    const config = { rateLimit: { limit: 2, window: "365d", name: "both" } } as const;
    app.get("/a", { config }, ok);
    app.get("/b", { config }, ok);
    app.get("/straße/:id(^\\d+)", { config: { rateLimit: { policy } } }, ok);
    expect([await statuses(app, "/a", 1), await statuses(app, "/a", 1, { method: "HEAD" }), await statuses(app, "/b", 1)]).toEqual([[200], [200], [429]]); // biome-ignore format: a row
    expect((await app.inject(`/${encodeURI("straße")}/1`)).headers["ratelimit"]).toMatch(/^"GET \/stra%C3%9Fe\/:id\(\^\\\\d\+\)";r=1;/);
  });

  it("that give one of limit and window have the other of the plugin, and not its plans", async () => {
    const app = Fastify();
    await app.register(rateLimit({ limit: 4, window: "1h", plan: () => "free", plans: { free: { limit: 2 } } }));
    app.get("/limit", { config: { rateLimit: { limit: 3 } } }, ok);
    app.get("/window", { config: { rateLimit: { window: "1d" } } }, ok);
    app.get("/none", { config: { rateLimit: { key: "global" } } }, ok);
    const policies = [];
    for (const url of ["/limit", "/window", "/none"]) policies.push((await app.inject(url)).headers["ratelimit-policy"]);
    expect(policies).toEqual(['"GET /limit";q=3;w=3600', '"GET /window";q=4;w=86400', '"GET /none";q=2;w=3600']);
  });

  it("keep the rules of the plugin out if they say how much is allowed, and its limit if they have rules", async () => {
    const app = Fastify();
    await app.register(rateLimit({ rules: [{ name: "all", policy }], keys: { user: () => "ann" } }));
    app.get("/a", { config: { rateLimit: { limit: 9, window: "1d" } } }, ok);
    app.get("/b", { config: { rateLimit: { rules: [{ name: "b", policy, key: "user" }] } } }, ok);
    const names = [];
    for (const url of ["/a", "/b", "/c"]) names.push((await app.inject(url)).headers["ratelimit-policy"]);
    expect(names).toEqual(['"GET /a";q=9;w=86400', '"b";q=2;w=31536000', '"all";q=2;w=31536000']);
  });

  it.each([
    [{ limit: -1, window: "1m" }, "FLOODGATE_INVALID_OPTION"],
    [{ max: 5 }, "FLOODGATE_UNKNOWN_OPTION"],
    [5, "FLOODGATE_INVALID_OPTION"],
    [{ hook: "onSend" }, "FLOODGATE_INVALID_OPTION"],
  ])("of %j are an error with the route when the app gets ready", async (wrong, code) => {
    const app = Fastify();
    await app.register(rateLimit({ policy }));
    app.get("/users/:id", { config: { rateLimit: wrong as never } }, ok);
    await expect(app.ready()).rejects.toMatchObject({ code });
  });
});

describe("a rejection", () => {
  it('with onLimited: "throw" goes to the error handler, with its status and headers', async () => {
    const app = Fastify();
    const seen: unknown[] = [];
    app.register(rateLimit({ policy, onLimited: "throw" }));
    app.get("/", ok);
    expect((await statuses(app, "/", 2)).concat((await app.inject("/")).json())).toMatchObject([
      200,
      200,
      { statusCode: 429, code: "FLOODGATE_LIMITED", error: "Too Many Requests" },
    ]);
    const own = Fastify();
    own.setErrorHandler((error, _request, reply) => {
      seen.push(error);
      reply.send({ own: (error as { statusCode?: number }).statusCode });
    });
    own.register(rateLimit({ policy, onLimited: "throw" }));
    own.get("/", ok);
    await statuses(own, "/", 2);
    const { statusCode, headers, body } = await own.inject("/");
    expect([statusCode, body, headers["cache-control"], headers["ratelimit"]]).toEqual([
      429,
      '{"own":429}',
      "no-store",
      expect.stringMatching(/^"default";r=0/),
    ]);
    expect(headers["retry-after"]).toMatch(/^\d+$/);
    expect(seen).toEqual([expect.any(LimitedError)]);
  });

  it.each<[string, NonNullable<Parameters<typeof rateLimit>[0]["onLimited"]>]>([
    ["returns a value", () => ({ slow: "down" })],
    ["returns a promise", async () => ({ slow: "down" })],
    ["sends and returns the reply", (_request, reply) => reply.send({ slow: "down" })],
    ["sends the reply", (_request, reply) => void reply.send({ slow: "down" })],
    ["sends and returns the reply in a promise", async (_request, reply) => reply.send({ slow: "down" })],
    ["sends the reply later", (_request, reply) => void setImmediate(() => reply.send({ slow: "down" }))],
  ])("is answered once by an onLimited that %s, also behind a slow onSend hook", async (_, onLimited) => {
    const app = Fastify();
    app.register(rateLimit({ policy, onLimited }));
    app.addHook("onSend", async (_request, _reply, payload) => {
      await new Promise((resolve) => setImmediate(resolve));
      return payload;
    });
    app.get("/", ok);
    await statuses(app, "/", 2);
    const { statusCode, body, headers } = await app.inject("/");
    expect([statusCode, body, headers["cache-control"]]).toEqual([429, '{"slow":"down"}', "no-store"]);
  });

  it("has the usual body if onLimited only observes", async () => {
    const app = Fastify();
    const seen: string[] = [];
    app.register(rateLimit({ policy, onLimited: ({ url }) => void seen.push(url) }));
    await statuses(app, "/", 2);
    expect([(await app.inject("/?a")).json().status, seen]).toEqual([429, ["/?a"]]);
  });
});

describe("the address of a client", () => {
  const from = async (trustProxy: unknown, forwarded: string): Promise<unknown> => {
    const app = Fastify({ trustProxy: trustProxy as boolean });
    app.register(rateLimit({ policy, onEvent: () => undefined, key: (_request, { ip }) => ip }));
    app.get("/", async (request) => request.ip);
    const { statusCode, json } = await app.inject({ url: "/", headers: { "x-forwarded-for": forwarded } });
    return statusCode === 200 ? "counted" : json().code;
  };

  it.each([
    [true, "FLOODGATE_FORGEABLE_CLIENT_IP"],
    [() => true, "FLOODGATE_FORGEABLE_CLIENT_IP"],
    ["0.0.0.0/1, 128.0.0.0/1", "FLOODGATE_FORGEABLE_CLIENT_IP"],
    ["127.0.0.1, 10.0.0.0/8", "counted"],
    ["loopback", "counted"],
    [(_address: string, hop: number) => hop < 2, "counted"],
    [false, "counted"],
  ])("under trustProxy: %s", async (trustProxy, expected) => {
    expect(await from(trustProxy, "198.51.100.1")).toBe(expected);
  });

  it("of a trustProxy that trusts nobody causes a warning, as a number is in Fastify", async () => {
    const codes: unknown[] = [];
    const app = Fastify({ trustProxy: 1 as never });
    app.register(rateLimit({ policy, onEvent: (event) => void (event.type === "warning" && codes.push(event.code)) }));
    await app.inject({ url: "/", headers: { "x-forwarded-for": "198.51.100.1" } });
    expect(codes).toEqual(["FLOODGATE_MISSING_PROXY_SETTING"]);
  });
});

describe("paths", () => {
  it("that the router cuts at a semicolon count under the rules of what is left", async () => {
    const app = Fastify({ routerOptions: { useSemicolonDelimiter: true } as object });
    app.register(rateLimit({ rules: [{ name: "login", match: { path: "/login" }, policy }] }));
    app.get("/login", ok);
    expect(await statuses(app, "/login;a/b?c", 3)).toEqual([200, 200, 429]);
  });
});

it("refunds by the status of an injected request", async () => {
  const app = Fastify();
  const limit = rateLimit({ policy, refundWhen: (status) => status < 400 });
  app.register(limit);
  app.get("/", ok);
  expect(await statuses(app, "/", 5)).toEqual([200, 200, 200, 200, 200]);
});

it("serves behind another server that passes it requests", async () => {
  const app = Fastify();
  app.register(rateLimit({ policy }));
  app.get("/", ok);
  await app.ready();
  const server = createServer((request: IncomingMessage, response) => app.routing(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
  const seen = [];
  for (let i = 0; i < 3; i++) seen.push((await fetch(url)).status);
  server.close();
  expect(seen).toEqual([200, 200, 429]);
});
