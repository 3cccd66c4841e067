import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { adapterConformance } from "@floodgate/conformance/adapter";
import { type Decision, fixedWindow } from "@floodgate/core";
import { isPromise } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import express5, { type Express, type NextFunction, type Request, type Response } from "express";
import express4 from "express4";
import { describe, expect, it, vi } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { heldClients } from "../../conformance/test/held-clients.js";
import { rateLimit } from "../src/index.js";
import { type ExpressModule, expressAdapter, listening } from "./express-app.js";

const versions: [string, ExpressModule][] = [
  ["Express 5", express5],
  ["Express 4", express4 as unknown as ExpressModule],
];

const adapter = expressAdapter("Express 5", express5);
adapterConformance({ describe, it }, adapter, { effort: allRuns ? 1 : 0.1 });
heldClients(adapter);

const policy = fixedWindow({ limit: 1, window: "365d" });
const ok = (_request: Request, response: Response): void => void response.json({ ok: true });

/** Runs a test against a listening app, by default on 127.0.0.1. */
async function serving(app: Express, run: (url: string) => Promise<void>, host?: string): Promise<void> {
  const server = await listening(app, host);
  try {
    await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function status(url: string, headers: Record<string, string> = {}): Promise<number> {
  const [response] = (await once(get(url, { headers, agent: false }), "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

/** An app that records the codes of its errors. */
function appOf(express: ExpressModule): { app: Express; codes: unknown[]; end: () => Express } {
  const app = express();
  const codes: unknown[] = [];
  const end = (): Express =>
    app.use((error: { code?: unknown }, _request: Request, response: Response, _next: NextFunction) => {
      codes.push(error.code);
      response.status(500).end();
    });
  return { app, codes, end };
}

describe.each(versions)("%s", (_, express) => {
  it.each([
    ["its prototype", (app: Express) => Object.defineProperty(app.request, "ip", { get: () => "203.0.113.9" })],
    [
      "each request",
      (app: Express) =>
        app.use((request, _response, next) => {
          Object.defineProperty(request, "ip", { value: "203.0.113.9" });
          next();
        }),
    ],
  ])("a req.ip that the app defines on %s is used as the client's address", async (_where, define) => {
    const { app, end } = appOf(express);
    define(app);
    const limit = rateLimit({ policy });
    app.use(limit);
    app.get("/", ok);
    await serving(end(), async (url) => {
      expect([await status(url), await status(url)]).toEqual([200, 429]);
      expect([await limit.limiter.peek("203.0.113.9"), await limit.limiter.peek("127.0.0.1")]).toMatchObject([
        { remaining: 0 },
        { remaining: 1 },
      ]);
    });
  });

  it("IPv4 clients of a server on :: are counted separately, as IPv4", async () => {
    const { app, end } = appOf(express);
    const seen: (string | undefined)[] = [];
    const limit = rateLimit<Request>({
      policy,
      key: (request, { ip }) => {
        seen.push(request.ip, ip);
        return ip;
      },
    });
    app.get("/", limit, ok);
    await serving(
      end(),
      async (url) => {
        expect([await status(url), await status(url)]).toEqual([200, 429]);
        expect(seen.slice(0, 2)).toEqual(["::ffff:127.0.0.1", "127.0.0.1"]);
      },
      "::",
    );
  });

  it("a mounted sub-app uses its own proxy setting and matches full paths", async () => {
    const { app, end } = appOf(express);
    app.set("trust proxy", 1);
    const sub = express();
    sub.use(rateLimit({ rules: [{ name: "sub", policy, match: { path: "/v1/items/:id" } }] }));
    sub.get("/items/:id", ok);
    app.use("/v1", sub);
    await serving(end(), async (url) => {
      const from = (ip: string) => status(`${url}/v1/items/1`, { "x-forwarded-for": `6.6.6.6, ${ip}` });
      expect([await from("192.0.2.1"), await from("192.0.2.1"), await from("192.0.2.2")]).toEqual([200, 429, 200]);
    });
  });

  it("one middleware in an app, its sub-app and the sub-app's router charges once", async () => {
    const { app, end } = appOf(express);
    const limit = rateLimit({ policy: fixedWindow({ limit: 2, window: "365d" }) });
    const sub = express();
    const router = express.Router();
    router.get("/", limit, ok);
    sub.use(limit, router);
    app.use(limit);
    app.use("/sub", sub);
    await serving(end(), async (url) => {
      expect([await status(`${url}/sub`), await status(`${url}/sub`), await status(`${url}/sub`)]).toEqual([200, 200, 429]);
    });
  });

  it("the key route is the route's pattern; without one, or with a RegExp, it is an error", async () => {
    const { app, codes, end } = appOf(express);
    const limit = rateLimit({ policy, key: "route" });
    app.get("/users/:id", limit, ok);
    app.get(/^\/files\/.*$/, limit, ok);
    app.use("/all", limit);
    await serving(end(), async (url) => {
      expect([await status(`${url}/users/1`), await status(`${url}/users/2`)]).toEqual([200, 429]);
      expect([await status(`${url}/files/1`), await status(`${url}/all`)]).toEqual([500, 500]);
      expect(codes).toEqual(["FLOODGATE_NO_ROUTE", "FLOODGATE_NO_ROUTE"]);
    });
  });

  it("the key route is one for all paths of a route with several paths, unless one is a RegExp", async () => {
    const { app, codes, end } = appOf(express);
    const limit = rateLimit({ policy, key: "route" });
    app.get(["/a/:id", "/b/:id"], limit, ok);
    app.get(["/c/:id", /^\/d\/.*$/], limit, ok);
    await serving(end(), async (url) => {
      expect([await status(`${url}/a/1`), await status(`${url}/b/2`)]).toEqual([200, 429]);
      expect(await limit.limiter.peek("/a/:id, /b/:id")).toMatchObject({ remaining: 0 });
      expect([await status(`${url}/c/1`), codes]).toEqual([500, ["FLOODGATE_NO_ROUTE"]]);
    });
  });

  it("decisionName can be any name that requests do not have yet, separately in each app", async () => {
    for (const [decisionName, expected] of [
      ["quota", [200, []]],
      ["quota", [200, []]],
      ["xhr", [500, ["FLOODGATE_CONFLICTING_OPTIONS"]]],
      ["rawHeaders", [500, ["FLOODGATE_CONFLICTING_OPTIONS"]]],
    ] as const) {
      const { app, codes, end } = appOf(express);
      app.get("/", rateLimit({ policy, decisionName }), ok);
      await serving(end(), async (url) => {
        expect([await status(url), codes]).toEqual(expected);
      });
    }
  });

  it.each(["rateLimit", "quota"])(
    "%s shows the decision of the copy of this package that decided, if two are installed",
    async (decisionName) => {
      vi.resetModules();
      const other = await import("../src/index.js");
      for (const limit of [rateLimit, other.rateLimit, rateLimit]) {
        const { app, end } = appOf(express);
        app.get("/", limit({ policy, decisionName }), (request: Request, response: Response) => {
          const decision: unknown = Reflect.get(request, decisionName);
          response.json(decision);
        });
        await serving(end(), async (url) => {
          expect(await (await fetch(url)).json()).toMatchObject({ allowed: true, remaining: 0 });
        });
      }
    },
  );

  it("a proxy setting with addresses is followed, and one that trusts everyone is refused", async () => {
    const forgeable = "FLOODGATE_FORGEABLE_CLIENT_IP";
    for (const [setting, codeOf] of [
      ["loopback", undefined],
      [["loopback", "10.0.0.0/8", "2001:db8::/32"], undefined],
      [2, undefined],
      [(address: string) => address === "127.0.0.1", undefined],
      [true, forgeable],
      [() => true, forgeable],
      [(_address: string, hop: number) => hop < 1000, forgeable],
      [1000, forgeable],
      [Number.POSITIVE_INFINITY, forgeable],
      [["0.0.0.0/1", "128.0.0.0/1"], forgeable],
      ["loopback, 2000::/4, 3000::/4", forgeable],
    ] as const) {
      const { app, codes, end } = appOf(express);
      app.set("trust proxy", setting);
      app.use(rateLimit({ policy }), ok);
      await serving(end(), async (url) => {
        const forged = await status(url, { "x-forwarded-for": "6.6.6.6, 192.0.2.1" });
        expect([forged, codes[0]]).toEqual([codeOf === undefined ? 200 : 500, codeOf]);
      });
    }
  });

  it("there is no proxy warning if the app defines `req.ip` itself", async () => {
    for (const define of [
      (app: Express) => Object.defineProperty(app.request, "ip", { get: () => "127.0.0.1" }),
      (app: Express) =>
        app.use((request: Request, _response: Response, next: NextFunction) => {
          Object.defineProperty(request, "ip", { value: "127.0.0.1" });
          next();
        }),
    ]) {
      const { app, end } = appOf(express);
      const events: string[] = [];
      define(app);
      app.use(rateLimit({ policy, onEvent: ({ type }) => type !== "request" && events.push(type) }), ok);
      await serving(end(), async (url) => {
        expect([await status(url, { "x-forwarded-for": "192.0.2.1" }), events]).toEqual([200, ["allowed"]]);
      });
    }
  });

  it("a rewritten URL is matched as the routers see it", async () => {
    const { app, end } = appOf(express);
    app.use((request: Request, _response: Response, next: NextFunction) => {
      request.url = request.url.replace("/v1/", "/");
      next();
    });
    app.use(rateLimit({ rules: [{ name: "posts", policy, match: { path: "/posts" } }] }));
    app.get("/posts", ok);
    await serving(end(), async (url) => {
      expect([await status(`${url}/v1/posts`), await status(`${url}/posts`)]).toEqual([200, 429]);
    });
  });

  it("a request that was answered during the key lookup is not touched", async () => {
    const { app, end } = appOf(express);
    let look: (key: string) => void = () => undefined;
    const key = (): Promise<string> =>
      new Promise((resolve) => {
        look = resolve;
      });
    const errors: unknown[] = [];
    const finished: Promise<unknown>[] = [];
    const limit = rateLimit({ policy, key });
    limit.limiter.consume("k");
    app.use((_request: Request, response: Response, next: NextFunction) => {
      response.on("error", (error) => errors.push(error));
      finished.push(once(response, "finish"));
      next();
      response.status(503).end("timeout");
    });
    app.use(limit, ok);
    await serving(end(), async (url) => {
      expect(await status(url)).toBe(503);
      await Promise.all(finished);
      look("k");
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
      expect(errors).toEqual([]);
      expect(limit.limiter.peek("k")).toMatchObject({ remaining: 0 });
    });
  });

  it("onLimited may use Express's response methods, including the content type", async () => {
    const { app, end } = appOf(express);
    app.use(rateLimit<Request, Response>({ policy, onLimited: (_request, response) => response.send("<p>Slow down") }), ok);
    await serving(end(), async (url) => {
      await fetch(url);
      const response = await fetch(url);
      expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
        429,
        "text/html; charset=utf-8",
        "<p>Slow down",
      ]);
    });
  });
});

describe("without a server", () => {
  it("a mock request gets its decision, and no other object does", () => {
    // Mocks of node-mocks-http have `ips` too.
    const address = { ip: "203.0.113.9", ips: ["203.0.113.9"] };
    const request = { ...address, method: "GET", headers: {}, socket: {}, app: { get: () => false } } as unknown as Request;
    const response = { getHeader() {}, setHeader() {} } as unknown as Response;
    rateLimit({ policy })(request, response, () => undefined);
    expect(request.rateLimit).toMatchObject({ allowed: true, remaining: 0 });
    expect("rateLimit" in {}).toBe(false);
  });

  const request = () => ({
    headers: {},
    method: "GET",
    ip: "192.0.2.1",
    baseUrl: "",
    path: "/",
    url: "/",
    originalUrl: "/",
    app: { get: () => false },
  });
  const response = () => {
    const headers: Record<string, string> = {};
    return {
      statusCode: 200,
      headersSent: false,
      headers,
      body: "",
      getHeader: (name: string) => headers[name],
      setHeader: (name: string, value: string) => {
        headers[name] = value;
      },
      end(body: string) {
        this.body = body;
      },
      once: () => undefined,
    };
  };

  it("with synchronous functions the middleware is synchronous: it calls next before it returns", () => {
    const limit = rateLimit({ policy, key: () => "k", cost: () => 1, skip: () => false });
    const [first, second] = [response(), response()];
    const calls: unknown[][] = [];
    const next = (...args: unknown[]): number => calls.push(args);
    expect(limit(request() as never, first as never, next)).toBeUndefined();
    expect(calls).toEqual([[]]);
    limit(request() as never, second as never, next);
    expect(calls).toHaveLength(1);
    expect([second.statusCode, JSON.parse(second.body).status, second.headers["Retry-After"]]).toEqual([
      429,
      429,
      expect.stringMatching(/^\d+$/),
    ]);
  });

  it("an error in a synchronous function is passed to next before the middleware returns", () => {
    const fault = new Error("key");
    const limit = rateLimit({
      policy,
      key: () => {
        throw fault;
      },
    });
    const calls: unknown[][] = [];
    limit(request() as never, response() as never, (...args: unknown[]) => calls.push(args));
    expect(calls).toEqual([[fault]]);
  });

  it("a limiter on the memory store returns plain values", () => {
    const { limiter } = rateLimit({ policy, store: memoryStore() });
    const decision = limiter.consume("k");
    expect(isPromise(decision)).toBe(false);
    expect((decision as Decision).allowed).toBe(true);
  });
});
