import { type FloodgateEvent, fixedWindow } from "@floodgate/core";
import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 100, window: "1m" });
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
