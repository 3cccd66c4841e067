import { type FloodgateEvent, fixedWindow } from "@floodgate/core";
import { Hono } from "hono";
import { handle as onLambda } from "hono/aws-lambda";
import { handle as onPages } from "hono/cloudflare-pages";
import { handle as onLambdaEdge } from "hono/lambda-edge";
import { handle as onNetlify } from "hono/netlify";
import { handle as onServiceWorker } from "hono/service-worker";
import { handle as onVercel } from "hono/vercel";
import { describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 100, window: "365d" });
const socket = { remoteAddress: "192.0.2.1" };

interface Asked {
  readonly env?: unknown;
  readonly headers?: Record<string, string>;
  /** The request's `cf` object from workerd. */
  readonly cf?: object;
}

/** Sends a request as a runtime passes it. Returns the counted client, the error code, and the codes of warnings. */
async function ask({ env, headers = {}, cf }: Asked): Promise<{ counted: unknown; error: unknown; warnings: unknown[] }> {
  let counted: unknown;
  let error: unknown;
  const warnings: unknown[] = [];
  const onEvent = (event: FloodgateEvent): void => {
    if (event.type === "allowed") counted = event.key;
    if (event.type === "warning") warnings.push(event.code);
  };
  const app = new Hono().use(rateLimit({ policy, onEvent }));
  app.get("/", (c) => c.text("ok"));
  app.onError((fault, c) => {
    error = (fault as { code?: unknown }).code;
    return c.text("no", 500);
  });
  await app.request(Object.assign(new Request("http://localhost/", { headers }), { cf }), undefined, env as object);
  return { counted, error, warnings };
}

/** Headers that any client can send. */
const forged = Object.fromEntries(
  ["x-forwarded-for", "forwarded", "x-real-ip", "cf-connecting-ip", "true-client-ip", "x-client-ip"].map((name) => [name, "198.51.100.1"]),
);

/** What events of AWS Lambda have in common. */
const lambda = { headers: { ...forged, host: "localhost" }, body: null, isBase64Encoded: false };

const sockets: [string, Asked][] = [
  ["Node: the socket of c.env.incoming", { env: { incoming: { socket }, outgoing: {} } }],
  ["Node, under c.env.server", { env: { server: { incoming: { socket }, outgoing: {} }, DB: {} } }],
  ["Bun: what its server says", { env: { requestIP: () => ({ address: "192.0.2.1", family: "IPv4", port: 1 }) } }],
  ["Bun, under c.env.server", { env: { server: { requestIP: () => ({ address: "192.0.2.1" }) } } }],
  ["Deno: c.env.remoteAddr", { env: { remoteAddr: { transport: "tcp", hostname: "192.0.2.1", port: 1 } } }],
  ["workerd by itself: cf.clientIp", { cf: { clientIp: "192.0.2.1:1" } }],
];

const edges: [string, Asked][] = [
  ["Cloudflare Workers: cf-connecting-ip", { cf: { colo: "AMS" }, headers: { "cf-connecting-ip": "192.0.2.1" } }],
  ["AWS Lambda, API Gateway 1", { env: { requestContext: { identity: { sourceIp: "192.0.2.1" } } } }],
  ["AWS Lambda, API Gateway 2", { env: { requestContext: { http: { sourceIp: "192.0.2.1" } } } }],
  ["Lambda@Edge", { env: { event: { Records: [{ cf: { request: { clientIp: "192.0.2.1" } } }] } } }],
  ["Netlify", { env: { context: { ip: "192.0.2.1" } } }],
];

describe("the client's address comes from the runtime, not from headers", () => {
  it.each([...sockets, ...edges])("%s", async (_, asked) => {
    expect(await ask({ ...asked, headers: { ...forged, ...asked.headers } })).toMatchObject({ counted: "192.0.2.1", error: undefined });
  });
});

/** An event of a platform, as its adapter in Hono takes it. The client has sent forged headers. */
const byAdapter: [string, string | undefined, (app: Hono) => unknown][] = [
  [
    "AWS Lambda, API Gateway 1",
    "192.0.2.1",
    (app) => onLambda(app)({ ...lambda, httpMethod: "GET", path: "/", requestContext: { identity: { sourceIp: "192.0.2.1" } } } as never),
  ],
  [
    "AWS Lambda, API Gateway 2 and function URLs",
    "192.0.2.1",
    (app) =>
      onLambda(app)({
        ...{ ...lambda, version: "2.0", rawPath: "/", rawQueryString: "" },
        requestContext: { domainName: "localhost", http: { method: "GET", path: "/", sourceIp: "192.0.2.1" } },
      } as never),
  ],
  [
    "AWS Lambda behind a load balancer",
    undefined,
    (app) => onLambda(app)({ ...lambda, httpMethod: "GET", path: "/", requestContext: { elb: { targetGroupArn: "arn" } } } as never),
  ],
  [
    "Lambda@Edge",
    "192.0.2.1",
    (app) => {
      const headers = Object.fromEntries(Object.entries(forged).map(([key, value]) => [key, [{ key, value }]]));
      const request = { clientIp: "192.0.2.1", headers, method: "GET", querystring: "", uri: "/" };
      const config = { distributionDomainName: "localhost", distributionId: "id", eventType: "viewer-request", requestId: "id" };
      return onLambdaEdge(app)({ Records: [{ cf: { config, request } }] } as never);
    },
  ],
  ["Netlify", "192.0.2.1", (app) => onNetlify(app)(new Request("http://localhost/", { headers: forged }), { ip: "192.0.2.1" } as never)],
  [
    "Cloudflare Pages",
    "192.0.2.1",
    (app) => {
      const request = new Request("http://localhost/", { headers: { ...forged, "cf-connecting-ip": "192.0.2.1" } });
      const context = { request: Object.assign(request, { cf: { colo: "AMS" } }), env: {}, waitUntil: () => undefined };
      return onPages(app)(context as never);
    },
  ],
  ["Vercel", undefined, (app) => onVercel(app)(new Request("http://localhost/", { headers: forged }))],
  [
    "a service worker",
    undefined,
    (app) =>
      new Promise((resolve) => {
        const request = new Request("http://localhost/", { headers: forged });
        onServiceWorker(app)({ request, respondWith: resolve, waitUntil: () => undefined } as never);
      }),
  ],
];

describe("behind Hono's adapters", () => {
  it.each(byAdapter)("%s: the client is %s", async (_, counted, send) => {
    const keys: unknown[] = [];
    const app = new Hono();
    app.use(rateLimit({ policy, onEvent: (event) => event.type === "allowed" && keys.push(event.key) }));
    app.get("/", (c) => c.text("ok"));
    app.onError((fault, c) => c.text(String((fault as { code?: unknown }).code), 500));
    const answer = await send(app);
    expect(keys).toEqual(counted === undefined ? [] : [counted]);
    if (counted !== undefined) return;
    const { body } = answer as { body: unknown };
    expect(answer instanceof Response ? await answer.text() : body).toBe("FLOODGATE_NO_CLIENT_IP");
  });

  it("on Vercel, the header that it overwrites is the client", async () => {
    const limit = rateLimit({ policy, clientIp: (c) => c.req.header("x-real-ip") });
    const app = new Hono();
    app.get("/", limit, (c) => c.text("ok"));
    await onVercel(app)(new Request("http://localhost/", { headers: { "x-real-ip": "192.0.2.1", "x-forwarded-for": "198.51.100.1" } }));
    expect(limit.limiter.peek("192.0.2.1")).toMatchObject({ remaining: 99 });
  });
});

describe("a forwarded address without a trusted proxy", () => {
  const headers = { "x-forwarded-for": "198.51.100.1" };

  it.each(sockets)("causes a warning if the address is a socket's: %s", async (_, asked) => {
    expect((await ask({ ...asked, headers })).warnings).toEqual(["FLOODGATE_MISSING_PROXY_SETTING"]);
  });

  it.each(edges)("causes no warning if the platform provides the address: %s", async (_, asked) => {
    expect((await ask({ ...asked, headers: { ...headers, ...asked.headers } })).warnings).toEqual([]);
  });
});

describe("without a client address, requests fail, whatever headers say", () => {
  it.each<[string, Asked]>([
    ["app.request() without an environment", {}],
    ["an environment of the app's own bindings", { env: { DB: {}, TOKEN: "secret" } }],
    ["an environment that is null", { env: null }],
    ["a client of Node that is gone", { env: { incoming: { socket: {} }, outgoing: {} } }],
    ["an upgraded connection without a socket", { env: { incoming: {}, outgoing: undefined } }],
    ["a request that Bun does not know", { env: { requestIP: () => null } }],
    ["a Unix socket of Deno's", { env: { remoteAddr: { transport: "unix", path: "/run/app.sock" } } }],
    ["AWS Lambda behind a load balancer, which sends the address only in a header", { env: { requestContext: { elb: {} } } }],
    ["an edge of Cloudflare's without its header", { cf: { colo: "AMS" } }],
  ])("%s", async (_, asked) => {
    const headers = asked.cf === undefined ? forged : { "x-forwarded-for": "198.51.100.1" };
    expect(await ask({ ...asked, headers })).toMatchObject({ counted: undefined, error: "FLOODGATE_NO_CLIENT_IP" });
  });

  it("workerd behind a Unix socket ignores cf-connecting-ip", async () => {
    expect(await ask({ cf: { clientPid: 1, clientUid: 1 }, headers: forged })).toMatchObject({ error: "FLOODGATE_NO_CLIENT_IP" });
  });
});

it("Workers bindings in c.env are ignored, whatever their names", async () => {
  const answersAnything: object = new Proxy(() => undefined, { get: () => answersAnything });
  const env = { server: answersAnything, incoming: answersAnything, requestIP: answersAnything, context: { ip: "198.51.100.1" } };
  const { counted, error } = await ask({ env, cf: { colo: "AMS" }, headers: { "cf-connecting-ip": "192.0.2.1" } });
  expect([counted, error]).toEqual(["192.0.2.1", undefined]);
});

it("clientIp can read proxy headers", async () => {
  const limit = rateLimit({ policy, clientIp: { trustedHops: 1 } });
  const app = new Hono();
  app.use(async (c, next) => {
    c.req.raw = new Request(c.req.raw, { headers: { "x-forwarded-for": "203.0.113.1" } });
    await next();
  });
  app.get("/", limit, (c) => c.text("ok"));
  await app.request("/", { headers: { "x-forwarded-for": "198.51.100.1" } }, { incoming: { socket } });
  expect([limit.limiter.peek("203.0.113.1"), limit.limiter.peek("198.51.100.1")]).toMatchObject([{ remaining: 99 }, { remaining: 100 }]);
});
