import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import {
  type Checked,
  concurrency,
  decisionOf,
  type FetchContext,
  fixedWindow,
  leakyBucket,
  memoryStore,
  rateLimit,
  vercelIp,
} from "../src/index.js";

const policy = fixedWindow({ limit: 2, window: "365d" });
const ip = "192.0.2.1";
const request = (headers: Record<string, string> = {}, init?: RequestInit) => new Request("http://localhost/a", { headers, ...init });
/** A handler that takes any arguments and ignores them. */
const any =
  (handler: () => Response | Promise<Response>) =>
  (_request: Request, ..._args: unknown[]): Response | Promise<Response> =>
    handler();
const shown = ({ decision }: Checked) => decision?.remaining;
const forged = Object.fromEntries(
  ["x-forwarded-for", "forwarded", "x-real-ip", "cf-connecting-ip", "true-client-ip"].map((name) => [name, "198.51.100.1"]),
);

it("check answers a response only to a rejected request, and headers and the decision to each", async () => {
  const limit = rateLimit({ policy, headers: "legacy" });
  const seen = [];
  for (let i = 0; i < 3; i++) {
    const { response, headers, decision } = await limit.check(request(), { ip });
    seen.push([response?.status, headers.get("x-ratelimit-remaining"), decision?.allowed, response?.headers.get("x-ratelimit-remaining")]);
  }
  expect(seen).toEqual([
    [undefined, "1", true, undefined],
    [undefined, "0", true, undefined],
    [429, "0", false, "0"],
  ]);
});

it("a rejected request is decided again if it is checked again, and is counted once when it passes", async () => {
  let nowMs = 0;
  const limit = rateLimit({ policy: fixedWindow({ limit: 2, window: "1m" }), store: memoryStore({ clock: () => nowMs }) });
  const [first, patient] = [request(), request()];
  const seen = [];
  for (const asking of [first, first, request(), patient, patient]) seen.push((await limit.check(asking, { ip })).response?.status);
  nowMs = 60_000;
  for (const asking of [patient, patient, request(), request()]) seen.push((await limit.check(asking, { ip })).response?.status);
  expect(seen).toEqual([undefined, undefined, undefined, 429, 429, undefined, undefined, undefined, 429]);
});

it("checks of one request at once by one limit are not taken for two middlewares", async () => {
  const warnings: string[] = [];
  const key = async () => "one key";
  const limit = rateLimit({ limit: 9, window: "1m", key, onEvent: (event) => event.type === "warning" && warnings.push(event.code) });
  for (const twice of [request(), request()]) await Promise.all([limit.check(twice, { ip }), limit.check(twice, { ip })]);
  expect(warnings).toEqual([]);
});

it("a request without an address is an error that says what to write, whatever its headers say", async () => {
  const limit = rateLimit({ policy });
  await expect(limit.check(request(forged))).rejects.toMatchObject({
    code: "FLOODGATE_NO_CLIENT_IP",
    message: expect.stringContaining("write limit.check(request, { ip })"),
  });
  await expect(limit(() => new Response())(request(forged))).rejects.toMatchObject({ code: "FLOODGATE_NO_CLIENT_IP" });
  expect(shown(await rateLimit({ policy, onMissingKey: "skip", key: () => undefined }).check(request()))).toBeUndefined();
});

/** Bun tells no address either of a `Request` that the app has made from another one. */
const lostOnBun: FetchContext = { requestIP: () => null, port: 3000 };

it.each<[string, string | number, FetchContext]>([
  ["a connection that was reset, on Bun", "FLOODGATE_NO_CLIENT_IP", lostOnBun],
  ["a connection that was reset, on Deno", 499, { remoteAddr: { transport: "tcp", hostname: "0.0.0.0", port: 0 } }],
  ["a Unix socket of Bun's", 200, { requestIP: () => null, port: undefined }],
  ["a Unix socket of Deno's", 200, { remoteAddr: { transport: "unix", path: "/run/app.sock" } }],
  ["an environment of the app's own", 200, { port: 3000 }],
])("onMissingKey: skip, by address, on %s: %s", async (_, expected, context) => {
  const client = new AbortController();
  const limited = rateLimit({ policy, onMissingKey: "skip" })(any(() => new Response()));
  const answered = limited(request({}, { signal: client.signal }), context).catch(({ code }) => ({ status: code }));
  // Deno does it once somebody listens.
  client.abort();
  expect((await answered).status).toBe(expected);
});

it("a request whose address Bun does not tell is skipped by a rule that does not count by address", async () => {
  const limited = rateLimit({ policy, onMissingKey: "skip", key: () => undefined })(any(() => new Response()));
  expect((await limited(request(), lostOnBun)).status).toBe(200);
});

it("anything but an address in the context counts as no address", async () => {
  for (const wrong of [null, 5, {}, [ip], Symbol("ip"), () => ip, "", "nobody"]) {
    const context = { ip: wrong as never };
    await expect(rateLimit({ policy }).check(request(), context)).rejects.toMatchObject({ code: "FLOODGATE_NO_CLIENT_IP" });
    const exempting = rateLimit({ policy, key: "global", exempt: { ips: ["10.0.0.0/8"] } });
    expect((await exempting.check(request(), context)).decision?.remaining).toBe(1);
  }
});

it("a limit is called with a handler, and says so to who calls it with a request", () => {
  const limit = rateLimit({ policy }) as (handler: unknown) => unknown;
  for (const given of [undefined, null, request(), new Response(), "handler", {}]) {
    expect(() => limit(given)).toThrow(
      expect.objectContaining({
        code: "FLOODGATE_INVALID_OPTION",
        message: expect.stringMatching(/^@floodgate\/fetch: .* or limit\.check\(request\)\.$/),
      }),
    );
  }
});

it.each<[string, object, FetchContext]>([
  ["the context", {}, { ip }],
  ["Bun's server", {}, { requestIP: () => ({ address: ip }) }],
  ["Bun's server in the context", {}, { server: { requestIP: () => ({ address: ip }) } }],
  ["Deno", {}, { remoteAddr: { hostname: ip } }],
  ["Workers", { cf: { colo: "AMS" }, headers: { "cf-connecting-ip": ip } }, { requestIP: "a binding", DB: {} }],
  ["workerd by itself", { cf: { clientIp: ip } }, {}],
  ["@hono/node-server", {}, { incoming: { socket: { remoteAddress: ip } } }],
  ["srvx on Node", { runtime: { name: "node", node: { req: { socket: { remoteAddress: ip } } } }, ip: "198.51.100.1" }, {}],
  ["srvx on Bun", { runtime: { name: "bun", bun: { server: { requestIP: () => ({ address: ip }) } } } }, {}],
  ["srvx on Deno", { runtime: { name: "deno", deno: { info: { remoteAddr: { hostname: ip } } } } }, {}],
])("the address comes from %s, not from headers", async (_, { headers, ...own }: { headers?: Record<string, string> }, context) => {
  const limit = rateLimit({ policy });
  await limit.check(Object.assign(request({ ...forged, ...headers }), own), context);
  expect(limit.limiter.peek(ip)).toMatchObject({ remaining: 1 });
});

it("a WebSocket on Bun, whose handler answers nothing, has the status 101, and a handler that fails 500", async () => {
  const statuses: number[] = [];
  const limit = rateLimit({ policy, refundWhen: (status) => statuses.push(status) > 0 && status >= 400 });
  const bun = { requestIP: () => ({ address: ip }), port: 3000 };
  const nothing = limit(any(() => undefined as never));
  expect(await nothing(request({ upgrade: "websocket" }), bun)).toBeUndefined();
  const fault = new Error("handler");
  for (const upgrade of ["", "websocket"]) {
    const failing = limit(any(() => Promise.reject(fault)));
    await expect(failing(request({ upgrade }), bun)).rejects.toBe(fault);
  }
  // A mistake: Deno answers 500, Bun logs an error and answers 204.
  expect(await nothing(request(), bun)).toBeUndefined();
  expect(statuses).toEqual([101, 500, 500, 500]);
  expect(limit.limiter.peek(ip)).toMatchObject({ remaining: 1 });
});

it.each([undefined, "5xx"])("a request that became a WebSocket on Deno is not read any more (refundWhen: %s)", async (refundWhen) => {
  const limit = rateLimit({ policy, ...(refundWhen && { refundWhen }) });
  const upgraded = Object.defineProperty(new Response(), "status", { value: 101 });
  const handler = limit((asked: Request, ..._args: unknown[]) => {
    for (const name of ["headers", "method", "url", "signal"]) {
      Object.defineProperty(asked, name, {
        get() {
          throw new TypeError("Request closed");
        },
      });
    }
    return upgraded;
  });
  expect(await handler(request({ upgrade: "websocket" }), { remoteAddr: { transport: "tcp", hostname: ip, port: 1 } })).toBe(upgraded);
});

it("a handler or onLimited that answers anything but a response is an error that says so, and counts as status 500", async () => {
  const statuses: number[] = [];
  const limit = rateLimit({ policy, refundWhen: (status) => statuses.push(status) > 0 });
  const wrong = [{ body: "hello" }, { body: "hello", headers: {} }, "hello", "", false, 0];
  for (const given of wrong) {
    await expect(limit(any(() => given as never))(request(), { ip })).rejects.toMatchObject({
      code: "FLOODGATE_INVALID_ANSWER",
      message: expect.stringMatching(
        /^rateLimit: `handler` must answer a Response, but .* Write handler: \(\) => new Response\("hello"\)\.$/,
      ),
    });
    const answering = rateLimit({ policy: fixedWindow({ limit: 0, window: "1m" }), onLimited: () => given as never });
    await expect(answering.check(request(), { ip })).rejects.toMatchObject({
      code: "FLOODGATE_INVALID_ANSWER",
      message: expect.stringMatching(
        /^rateLimit: `onLimited` must .* Write onLimited: \(\) => new Response\("Slow down", \{ status: 429 \}\)\.$/,
      ),
    });
  }
  expect(statuses).toEqual(wrong.map(() => 500));
  expect(limit.limiter.peek(ip)).toMatchObject({ remaining: 2 });
});

it.each(["headers", "refunds"])("a copy of a response of Azure Functions for its %s keeps the cookies", async (why) => {
  const limit = rateLimit({ policy, ...(why === "refunds" && { refundWhen: "5xx" }) });
  const cookies = [{ name: "session", value: "1" }];
  const own = Object.assign(new Response(why === "refunds" ? "hello" : null), { cookies });
  const sent = await limit(any(() => own))(request(), { ip });
  expect([sent.headers.has("ratelimit"), sent]).toEqual([true, expect.objectContaining({ cookies })]);
  expect(sent).not.toBe(own);
});

/** What Bun's `routes` match: the target as sent. They decode the values of parameters. */
const decodedOf = (segment = ""): string => (/%(?![\da-f]{2})/i.test(segment) ? segment : decodeURIComponent(segment));

it.each<[how: string, pathOf: (url: string, target: string) => string, told?: (segments: string[]) => object]>([
  ["its pathname", (url) => new URL(url).pathname],
  ["all of it before the query, as Elysia", (url) => url.replace(/\?.*/, "").replace(/^http:..[^/]*/, "")],
  [
    "not asked, but the target, as in Bun's routes",
    (_, target) => target.replace(/\?.*/, ""),
    ([, , id]) => ({ params: { id: decodedOf(id) } }),
  ],
])("no target evades a rule where the path of a URL is %s", async (_, pathOf, told) => {
  const rules = ["/posts", "/users/:id", "/users/:id/keys"].map(
    (path) => ({ name: path, policy, key: "global", match: { path } }) as const,
  );
  const routes = [/^\/posts$/, /^\/users\/[^/]+$/, /^\/users\/[^/]+\/keys$/];
  const ids = String.raw`7 .. . %2e%2E # #7 7#8 a\b a\..\..\posts \..\..\# 7;x a%5cb a%2fb ..# .%2e#x ..?x`.split(" ");
  let reached = 0;
  for (const target of ["/posts", "/posts#x", ...ids.flatMap((id) => [`/users/${id}`, `/users/${id}/keys`])]) {
    const { href } = new URL(target, "http://h");
    const { headers } = await rateLimit({ rules }).check(Object.assign(new Request(href), told?.(pathOf(href, target).split("/"))));
    routes.forEach((route, i) => {
      if (!route.test(pathOf(href, target))) return;
      reached++;
      expect(headers.get("ratelimit"), target).toContain(`"${rules[i]?.name}"`);
    });
  }
  expect(reached).toBeGreaterThan(8);
});

it.each(['"foo"', "a\nb", "7#8", "...", "a..", "..x"])(
  "a parameter of Bun's routes that moves no path counts under its own rules: %j",
  async (q) => {
    const rules = ["/login", "/search/:q"].map((path) => ({ name: path, policy, key: "global", match: { path } }) as const);
    const url = `http://h/search/${encodeURIComponent(q)}`;
    const { decision } = await rateLimit({ rules }).check(Object.assign(new Request(url), { params: { q } }));
    expect(decision?.decisions?.map(({ name }) => name) ?? decision?.name).toEqual(["/search/:q"]);
  },
);

it.each([
  ["/posts/:id", "/posts/7/__data.json"],
  ["/posts/:id", "/posts/7/q-data.json"],
  ["/login", "/login.data"],
  ["/login", "/login/_.data"],
  ["/login", "/login.rsc"],
  ["/", "/_.rsc"],
  ["/", "/_root.data"],
  ["/", "/__data.json"],
  ["/a.html", "/a.html__data.json"],
  ["/a.html", "/a.html/__data.json"],
  ["/a__data.json", "/a__data.json"],
])("a rule for the page %s counts requests for its data, as frameworks send them: %s", async (path, target) => {
  const limit = rateLimit({ rules: [{ name: "page", limit: 5, window: "365d", key: "global", match: { path } }] });
  expect((await limit.check(new Request(`http://h${target}?x`))).decision?.name).toBe("page");
  expect((await limit.check(new Request(`http://h/other${target}`))).decision?.name).toBe(undefined);
});

// Those of Azure Functions.
it("requests without a signal are limited, refunded, held, and give their slots back", async () => {
  const unsignalled = (): Request => Object.defineProperty(request(), "signal", { value: undefined });
  await expect(rateLimit({ policy }).check(unsignalled())).rejects.toMatchObject({ code: "FLOODGATE_NO_CLIENT_IP" });
  const policies = [concurrency({ limit: 1, hold: "1d" }), leakyBucket({ capacity: 2, leak: 100, every: "1s" })];
  const statuses: number[] = [];
  for (const limited of [
    ...policies.map((one) => rateLimit({ policy: one })),
    rateLimit({ policy, refundWhen: (status) => status < 500 }),
  ]) {
    const handler = limited(any(() => new Response("hello")));
    for (let i = 0; i < 4; i++) {
      const response = await handler(unsignalled(), { ip });
      statuses.push(response.status);
      await response.text();
      // The slot comes back after the client has the last byte.
      await setImmediate();
    }
  }
  expect(new Set(statuses)).toEqual(new Set([200]));
});

it("clientIp says which header counts: X-Forwarded-For behind a proxy, X-Real-IP on Vercel", async () => {
  for (const [clientIp, headers] of [
    [{ trustedHops: 1 }, { "x-forwarded-for": `198.51.100.1, ${ip}` }],
    [vercelIp, { "x-real-ip": ip }],
  ] as const) {
    const limit = rateLimit({ policy, clientIp });
    await limit.check(request({ ...forged, ...headers }));
    expect(limit.limiter.peek(ip)).toMatchObject({ remaining: 1 });
  }
});

it("a handler behind a limit gets all arguments, and finds the decision", async () => {
  const limit = rateLimit({ policy });
  const handler = limit((asked, context: { ip: string }, third: number) =>
    Response.json([decisionOf(asked)?.remaining, context.ip, third]),
  );
  const response = await handler(request(), { ip }, 3);
  expect([await response.json(), response.headers.get("ratelimit")]).toEqual([[1, ip, 3], expect.stringMatching(/^"default";r=1;/)]);
});

it("responses whose headers cannot change, and those that requests share, get the headers in a copy", async () => {
  const shared = new Response(null, { status: 204 });
  const limit = rateLimit({ policy: fixedWindow({ limit: 100, window: "365d" }) });
  for (const [i, handler] of [
    () => shared,
    () => shared,
    () => Response.redirect("http://localhost/b", 302),
    () => fetch("data:,hello"),
  ].entries()) {
    const response = await limit(any(handler))(request(), { ip });
    expect(response.headers.get("ratelimit")).toMatch(new RegExp(`^"default";r=${99 - i};t=\\d+$`));
  }
  expect(shared.headers.has("ratelimit")).toBe(false);
  // A network error cannot be copied.
  expect((await limit(any(() => Response.error()))(request(), { ip })).type).toBe("error");
});

it("a limit around another one shows its items first, also on the inner one's rejection", async () => {
  const outer = rateLimit({ name: "outer", policy });
  const inner = rateLimit({ name: "inner", policy: fixedWindow({ limit: 1, window: "365d" }) });
  const handler = outer(inner(any(() => new Response("ok"))));
  for (const status of [200, 429]) {
    const response = await handler(request(), { ip });
    expect([response.status, response.headers.get("ratelimit")?.replace(/;r=\d+;t=\d+/g, "")]).toEqual([status, '"outer", "inner"']);
  }
});

it("a response that a handler throws gets the headers; an error is passed on as it is", async () => {
  const limit = rateLimit({ policy });
  const thrown = await limit(
    any(() => {
      throw Response.json({}, { status: 404 });
    }),
  )(request(), { ip }).catch((error: Response) => error);
  expect([thrown.status, thrown.headers.has("ratelimit")]).toEqual([404, true]);
  const fault = new Error("handler");
  const failing = limit(any(() => Promise.reject(fault)));
  await expect(failing(request(), { ip })).rejects.toBe(fault);
});

it("onLimited answers with 429 unless it sets another status", async () => {
  const answers = [() => new Response("slow"), () => new Response("slow", { status: 503 }), () => undefined];
  const statuses = [];
  for (const onLimited of answers) {
    const limit = rateLimit({ policy: fixedWindow({ limit: 0, window: "1m" }), onLimited });
    statuses.push((await limit.check(request(), { ip })).response?.status);
  }
  expect(statuses).toEqual([429, 503, 429]);
});

it.each<
  [string, (waitUntil: (work: Promise<unknown>) => void) => { option?: (work: Promise<unknown>) => void; args: unknown[]; own?: object }]
>([
  ["the option", (waitUntil) => ({ option: waitUntil, args: [{ ip }] })],
  ["the context", (waitUntil) => ({ args: [{ ip, waitUntil }] })],
  ["the third argument, as on Workers", (waitUntil) => ({ args: [{ ip }, { waitUntil }] })],
  ["the request, as in srvx", (waitUntil) => ({ args: [{ ip }], own: { waitUntil } })],
])("refunds wait for the end of the body, kept alive by waitUntil of %s", async (_, of) => {
  const work: Promise<unknown>[] = [];
  const { option, args, own } = of((promise) => work.push(promise));
  const limit = rateLimit({ policy, refundWhen: (status) => status === 404, ...(option && { waitUntil: option }) });
  const handler = limit((_request: Request, ..._args: unknown[]) => new Response("no", { status: 404 }));
  const response = await handler(Object.assign(request(), own), ...args);
  expect(work).toHaveLength(1);
  expect(limit.limiter.peek(ip)).toMatchObject({ remaining: 1 });
  await response.text();
  await work[0];
  expect(limit.limiter.peek(ip)).toMatchObject({ remaining: 2 });
});

it("a failed handler counts as status 500, and a client that leaves as 499", async () => {
  const statuses: number[] = [];
  const limit = rateLimit({ policy, refundWhen: (status) => statuses.push(status) < 0 });
  await limit(any(() => Promise.reject(new Error("handler"))))(request(), { ip }).catch(() => undefined);
  const gone = new AbortController();
  await limit(
    any(() => {
      gone.abort();
      return new Response("late");
    }),
  )(request({}, { signal: gone.signal }), { ip });
  expect(statuses).toEqual([500, 499]);
});

it("a held request passes at its turn, and one whose client leaves gets 499 and is not served", async () => {
  const limit = rateLimit({ policy: leakyBucket({ capacity: 5, leak: 1, every: "1h" }), key: "global" });
  const served: number[] = [];
  const handler = (i: number) => limit(() => new Response(`${served.push(i)}`));
  await handler(0)(request());
  const gone = new AbortController();
  const [left, kept] = [handler(1)(request({}, { signal: gone.signal })), handler(2)(request())];
  gone.abort();
  expect((await left).status).toBe(499);
  limit.close();
  expect([(await kept).status, served]).toEqual([200, [0, 2]]);
});

it("anything but a Request is an error that names the right package", async () => {
  const express = { app: { get: () => false }, res: {}, headers: {}, socket: {} } as never;
  await expect(rateLimit({ policy }).check(express)).rejects.toThrow(
    /takes a Request of the Fetch API, but was given a request of Express\. Write import .*@floodgate\/express/,
  );
});
