import { describe, expect, it } from "vitest";
import { few, startServe } from "../world.js";
import { head, sendRaw } from "./raw.js";

/** The headers in which each gateway says what it asks about. */
const forwarded = (method: string, uri: string, ip = "203.0.113.9"): Record<string, string> => ({
  "X-Forwarded-Method": method,
  "X-Forwarded-Uri": uri,
  "X-Forwarded-Host": "shop.example",
  "X-Forwarded-Proto": "https",
  "X-Forwarded-For": ip,
});

const original = (method: string, uri: string, ip = "203.0.113.9"): Record<string, string> => ({
  "X-Original-Method": method,
  "X-Original-URI": uri,
  "X-Original-Host": "shop.example",
  "X-Original-For": ip,
});

describe("nginx", () => {
  it("gets 204 with RateLimit headers, and 403 with the real status once the limit is reached", async () => {
    const { ask } = await startServe([few(1)]);
    const allowed = await fetch(`${ask}/ask/nginx`, { headers: original("GET", "/") });
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("ratelimit")).toMatch(/^"few";r=0;t=\d+$/);
    expect(allowed.headers.get("ratelimit-policy")).toMatch(/^"few";q=1;w=\d+$/);
    const limited = await fetch(`${ask}/ask/nginx`, { headers: original("GET", "/") });
    expect(limited.status).toBe(403);
    expect(Object.fromEntries(limited.headers)).toMatchObject({
      "x-floodgate-status": "429",
      "retry-after": expect.stringMatching(/^\d+$/),
      ratelimit: expect.stringContaining('"few";r=0'),
      "cache-control": "no-store",
      "content-length": "0",
    });
    expect((await fetch(`${ask}/ask/nginx`, { headers: original("GET", "/", "203.0.113.10") })).status).toBe(204);
  });

  it("is asked over HTTP/1.0, as by default", async () => {
    const { ask } = await startServe([few(1)]);
    const lines = Object.entries(original("GET", "/")).map(([name, value]) => `${name}: ${value}`);
    const [response] = await sendRaw(ask, head("GET /ask/nginx HTTP/1.0", "Host: floodgate", "Connection: close", ...lines));
    expect(response).toMatchObject({ status: 204 });
  });
});

describe.each(["caddy", "traefik", "haproxy", "apache", "generic"])("%s", (name) => {
  it("gets 204, and 429 with a body for the client once the limit is reached", async () => {
    const { ask } = await startServe([few(1)]);
    expect((await fetch(`${ask}/ask/${name}`, { headers: forwarded("GET", "/") })).status).toBe(204);
    const limited = await fetch(`${ask}/ask/${name}`, { headers: forwarded("GET", "/") });
    expect(limited.status).toBe(429);
    expect(limited.headers.get("content-type")).toBe("application/problem+json");
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await limited.json()).toMatchObject({ status: 429, "violated-policies": ["few"] });
  });
});

describe("Envoy", () => {
  /** As `RawHttpClientImpl::check` builds it: the length first, then the allowed headers, the path after the prefix. */
  const asEnvoy = (method: string, path: string, ...more: string[]): string =>
    head(
      `${method} /ask/envoy${path} HTTP/1.1`,
      "content-length: 0",
      "host: shop.example",
      "x-forwarded-for: 198.51.100.7,203.0.113.9",
      "x-envoy-internal: true",
      ...more,
    );

  it("gets 200 for what is allowed, and 429 for what is not", async () => {
    const { ask } = await startServe([few(1)]);
    const responses = await sendRaw(ask, asEnvoy("POST", "/login"), asEnvoy("POST", "/login", "connection: close"));
    expect(responses.map(({ status }) => status)).toEqual([200, 429]);
    expect(responses[0]?.headers).toMatchObject({ "content-length": "0", ratelimit: expect.any(String) });
    expect(JSON.parse(responses[1]?.body ?? "")).toMatchObject({ status: 429 });
  });

  it("asks with the method, the path and the query of the client", async () => {
    const { ask } = await startServe([few(1, { match: { method: "DELETE", path: "/users/:id" } })]);
    const paths = ["/users/7?x=/ask/envoy", "/users/7"];
    const got = await sendRaw(ask, ...paths.map((path) => asEnvoy("DELETE", path)), asEnvoy("GET", "/users/7", "connection: close"));
    expect(got.map(({ status }) => status)).toEqual([200, 429, 200]);
  });

  it("is not answered for a path that only begins like the preset's", async () => {
    const { ask } = await startServe([few(1)]);
    expect((await fetch(`${ask}/ask/envoyx/users`)).status).toBe(404);
  });
});

describe("the rules see", () => {
  it.each([
    ["the method", { method: "POST" }, forwarded("POST", "/"), forwarded("GET", "/")],
    ["HEAD as GET", { method: "GET" }, forwarded("HEAD", "/"), forwarded("PUT", "/")],
    ["the path without the query", { path: "/users/:id" }, forwarded("GET", "/users/7?page=2"), forwarded("GET", "/?/users/7")],
    ["escapes", { path: "/users" }, forwarded("GET", "/%75sers"), forwarded("GET", "/%74sers")],
    ["empty segments", { path: "/users" }, forwarded("GET", "//users"), forwarded("GET", "//other")],
    ["dot segments", { path: "/users" }, forwarded("GET", "/x/../users"), forwarded("GET", "/x/users")],
    ["an absolute target", { path: "/users" }, forwarded("GET", "http://shop.example/users"), forwarded("GET", "http://users/")],
    ["a header", { header: { "x-beta": "1" } }, { ...forwarded("GET", "/"), "X-Beta": "1" }, forwarded("GET", "/")],
    [
      "the client's host",
      { header: { host: "shop.example" } },
      forwarded("GET", "/"),
      { ...forwarded("GET", "/"), "X-Forwarded-Host": "x" },
    ],
  ])("%s", async (_, match, fits, other) => {
    const { ask } = await startServe([few(1, { match })]);
    const ofFitting = [await fetch(`${ask}/ask/caddy`, { headers: fits }), await fetch(`${ask}/ask/caddy`, { headers: fits })];
    expect(ofFitting.map(({ status }) => status)).toEqual([204, 429]);
    expect((await fetch(`${ask}/ask/caddy`, { headers: other })).status).toBe(204);
  });

  it("the client's address, counted from the right past trusted peers", async () => {
    const { ask } = await startServe([few(1)], { trustedPeers: ["loopback", "10.0.0.0/8"] });
    const status = async (list: string): Promise<number> =>
      (await fetch(`${ask}/ask/traefik`, { headers: forwarded("GET", "/", list) })).status;
    expect(await status("192.0.2.1, 203.0.113.9, 10.1.2.3")).toBe(204);
    expect(await status("192.0.2.2, 203.0.113.9")).toBe(429);
    expect(await status("203.0.113.9, 192.0.2.2")).toBe(204);
  });
});

it("Only the presets that are enabled answer", async () => {
  const { ask } = await startServe([few(1)], { presets: ["nginx", "envoy"] });
  const statuses = async (...paths: string[]): Promise<number[]> =>
    Promise.all(paths.map(async (path) => (await fetch(`${ask}${path}`, { headers: original("GET", "/") })).status));
  expect(await statuses("/ask/nginx", "/ask/caddy", "/ask/constructor", "/ask/", "/", "/ask/nginx/x")).toEqual([
    204, 404, 404, 404, 404, 404,
  ]);
});

it("With an empty list of presets, nobody is asked", async () => {
  const { running } = await startServe([few(1)], { presets: [], apiListen: "127.0.0.1:0" });
  expect(Object.keys(running.addresses)).toEqual(["apiListen"]);
});
