import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { LiveFigures, Overview, RuleHistory } from "../../src/contract.js";
import { apps, type Running, type Setup } from "./apps.js";
import { type Ask, ask, askRaw, leave, openEvents } from "./http.js";

const warnings: string[] = [];
beforeAll(() => {
  vi.spyOn(console, "warn").mockImplementation((message: string) => void warnings.push(message));
});

afterAll(() => {
  expect(warnings.filter((warning) => warning.includes("FLOODGATE_DASHBOARD_CLOSED"))).toHaveLength(1);
});

const root = "/_floodgate";
/** Everything that answers to a GET. */
const addresses = [root, `${root}/`, `${root}/data/overview`, `${root}/data/history?range=hour`];
const post = { method: "POST", headers: { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin" } };

describe.each(apps)("on %s", (_, start) => {
  const running: Running[] = [];
  const begin = async (setup: Setup = {}): Promise<number> => {
    const app = await start(setup);
    running.push(app);
    return app.port;
  };
  afterEach(async () => {
    vi.unstubAllEnvs();
    await Promise.all(running.splice(0).map((app) => app.close()));
  });

  describe("without authorize", () => {
    let port: number;
    let app: Running;
    beforeAll(async () => {
      app = await start({});
      port = app.port;
    });
    afterAll(() => app.close());

    it("answers a browser on this machine, whichever loopback name it uses", async () => {
      for (const host of ["localhost", `localhost:${port}`, "127.0.0.1", "LOCALHOST:80", "[::1]:3000"]) {
        for (const path of addresses) expect((await ask(port, path, { headers: { Host: host } })).status, `${host}${path}`).toBe(200);
      }
    });

    const outside: readonly (readonly [why: string, ask: Ask])[] = [
      ...["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "127.0.0.2", "0.0.0.0"].map(
        (host) => [`Host: ${host}`, { headers: { Host: host } }] as const,
      ),
      ...[
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "Forwarded",
        "X-Real-IP",
        "Via",
        "CF-Connecting-IP",
        "True-Client-IP",
        "X-Client-IP",
        "X-Envoy-External-Address",
        "Fly-Client-IP",
        "X-Original-Forwarded-For",
        "CDN-Loop",
      ].map((name) => [`${name}: 127.0.0.1`, { headers: { [name]: "127.0.0.1" } }] as const),
      ["Origin: https://evil.example", { headers: { Origin: "https://evil.example" } }],
      ["Origin: null", { headers: { Origin: "null" } }],
    ];
    it.each(outside)("gives the app's own 404 to a request with %s", async (_, { headers = {} }) => {
      for (const path of [root, `${root}/data/overview`]) {
        const { status, text } = await ask(port, path, { headers });
        expect([path, status, text]).toEqual([path, 404, "the app's own 404"]);
      }
    });

    it("gives the app's own 404 from elsewhere, at every address and with every method", async () => {
      const headers = { Host: "evil.example" };
      for (const path of [...addresses, `${root}/data/live`]) expect((await ask(port, path, { headers })).text).toBe("the app's own 404");
      for (const method of ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"]) {
        expect((await ask(port, `${root}/data/overview`, { method, headers })).status, method).toBe(404);
      }
      for (const path of ["/data/key", "/actions/reset"]) {
        expect((await ask(port, root + path, { ...post, headers: { ...post.headers, ...headers }, body: "{}" })).status).toBe(404);
      }
    });

    it("gives the app's own 404 to proxies that add no header, and whose Host is the app's address", async () => {
      const host = `Host: localhost:${port}`;
      const proxies: readonly (readonly [version: string, ...lines: string[]])[] = [
        ["HTTP/1.0", host, "Connection: close"], // nginx before 1.30
        ["HTTP/1.0", host, "Connection: keep-alive"],
        ["HTTP/1.1", host, "Connection: close"], // nginx with `proxy_http_version 1.1`; Vite, webpack-dev-server
        ["HTTP/1.1", host], // nginx 1.30, HAProxy
        ["HTTP/1.1", host, "Connection: upgrade"],
      ];
      for (const [version, ...lines] of proxies) {
        for (const path of addresses) {
          expect(await askRaw(port, [`GET ${path} ${version}`, ...lines]), lines.join()).toBe("HTTP/1.1 404 Not Found");
        }
      }
      expect(await askRaw(port, [`GET ${root}/ HTTP/1.1`, host, "Connection: keep-alive"])).toBe("HTTP/1.1 200 OK");
    });

    it("gives the app's own 404 in production", async () => {
      vi.stubEnv("NODE_ENV", "production");
      for (const path of addresses) expect((await ask(port, path)).text).toBe("the app's own 404");
    });
  });

  it("asks authorize, wherever the request comes from", async () => {
    vi.stubEnv("NODE_ENV", "production");
    const headers = { Host: "app.example", "X-Forwarded-For": "203.0.113.9" };
    for (const [authorize, status, text] of [
      [() => true, 200, "overview"],
      [async () => true, 200, "overview"],
      [() => false, 404, "the app's own 404"],
      [async () => undefined, 404, "the app's own 404"],
      [() => "no", 500, "error: dashboard: `authorize` must answer true or false"],
      [() => ({}), 500, "error: dashboard: `authorize` must answer true or false"],
      [() => Promise.reject(new Error("no session")), 500, "error: no session"],
    ] as const) {
      const port = await begin({ options: { authorize, title: "overview" } });
      const reply = await ask(port, `${root}/data/overview`, { headers });
      expect([reply.status, reply.text.includes(text)]).toEqual([status, true]);
      expect((await ask(port, "/")).text).toBe("hello");
    }
  });

  it("gives authorize the framework's own request", async () => {
    const authorize = (request: { readonly req?: unknown; readonly headers?: unknown }): boolean =>
      (request.req ?? request.headers) !== undefined;
    const port = await begin({ options: { authorize: authorize as never } });
    expect((await ask(port, root)).status).toBe(200);
  });

  it("answers HEAD without a body, and other methods with 405", async () => {
    const port = await begin();
    for (const path of addresses) {
      expect(await ask(port, path, { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
      for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
        const { status, headers } = await ask(port, path, { method });
        expect([path, method, status, headers.allow]).toEqual([path, method, 405, "GET, HEAD"]);
      }
    }
    expect(await ask(port, `${root}/data/live`, { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
    expect((await ask(port, `${root}/data/key`)).headers.allow).toBe("POST");
  });

  it("leaves other addresses to the app", async () => {
    const port = await begin();
    const others = ["/x", "/data", "/page/", "/page/../package.json", "/page/%2e%2e%2fpackage.json", "/page/none.js", "/data/overview/x"];
    for (const path of others) expect((await ask(port, root + path)).text, path).toBe("the app's own 404");
    expect((await ask(port, "/_floodgatex")).text).toBe("the app's own 404");
  });

  it("sends headers that forbid all that the page does not need", async () => {
    const port = await begin({ options: { title: `<script>alert("&'")</script>` } });
    const first = await ask(port, root);
    const second = await ask(port, `${root}/`);
    const [one, two] = [first, second].map(
      ({ headers }) => /script-src 'nonce-([\w+/=]+)'/.exec(headers["content-security-policy"] as string)?.[1],
    );
    expect(one).toHaveLength(24);
    expect(two).not.toBe(one);
    expect(first.text.split(`nonce="${one}"`).length).toBeGreaterThan(2);
    expect(first.text).toContain("<title>&lt;script&gt;alert(&quot;&amp;&#39;&quot;)&lt;/script&gt;</title>");
    expect(first.headers["content-security-policy"]).toMatch(/^default-src 'none';.*frame-ancestors 'none'/);
    expect(first.headers["content-security-policy"]).not.toContain("unsafe");
    for (const path of addresses) {
      expect((await ask(port, path)).headers, path).toMatchObject({
        "cache-control": "no-store, no-transform",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "content-security-policy": expect.stringContaining("default-src 'none'"),
      });
    }
  });

  it("refuses a bad query or body, and POSTs from elsewhere", async () => {
    const port = await begin();
    for (const range of ["week", "", "__proto__", "x".repeat(5000)]) {
      expect((await ask(port, `${root}/data/history?range=${range}`)).status).toBe(400);
    }
    for (const data of ["overview", "history", "live"]) {
      for (const site of ["cross-site", "same-site", ""]) {
        const headers = { "Sec-Fetch-Site": site };
        expect((await ask(port, `${root}/data/${data}`, { headers })).status, `${data} from ${site}`).toBe(403);
      }
    }
    for (const site of ["same-origin", "none"]) {
      expect((await ask(port, `${root}/data/overview`, { headers: { "Sec-Fetch-Site": site } })).status).toBe(200);
    }
    const key = `${root}/data/key`;
    const status = async (headers: Record<string, string>, body: string): Promise<number> =>
      (await ask(port, key, { method: "POST", headers: { ...post.headers, ...headers }, body })).status;
    for (const site of ["cross-site", "same-site", "none", ""]) expect(await status({ "Sec-Fetch-Site": site }, '{"key":"a"}')).toBe(403);
    expect((await ask(port, key, { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"key":"a"}' })).status).toBe(
      403,
    );
    expect(await status({ "Content-Type": "text/plain" }, '{"key":"a"}')).toBe(415);
    for (const body of ["", "{", "[]", "1", "null", "{}", '{"key":{}}', '{"key":[]}', '{"key":"a","rule":1}', '{"id":5}']) {
      expect([body, await status({}, body)]).toEqual([body, 400]);
    }
    expect(await status({}, `{"key":"${"x".repeat(20_000)}"}`)).toBe(413);
    expect(await status({ "Transfer-Encoding": "chunked" }, `{"key":"${"x".repeat(20_000)}"}`)).toBe(413);
  });

  it("shows exactly the requests that were sent", async () => {
    const name = `known ${_}`;
    const port = await begin({ limit: { name, limit: 3 } });
    for (let i = 0; i < 5; i++) await ask(port, "/");
    const stream = await openEvents(port, `${root}/data/live`);
    const counts = { allowed: 3, limited: 2 };
    // Requests are counted when their second has ended; units are at once.
    let figures = (await stream.next()) as LiveFigures;
    while (!figures.overview.totals.some(({ rule, counts: seen }) => rule === name && seen.limited === counts.limited)) {
      figures = (await stream.next()) as LiveFigures;
    }
    const { series } = figures.minute.rules.find(({ rule }) => rule === name) as RuleHistory;
    expect([series.allowed, series.limited].map((each) => each?.reduce((a, b) => a + b))).toEqual([3, 2]);
    stream.close();
    const overview: Overview = JSON.parse((await ask(port, `${root}/data/overview`)).text);
    expect(overview.totals.find(({ rule }) => rule === name)).toEqual({ rule: name, counts, units: { asked: 5, charged: 3 }, bans: 0 });
    expect(overview.rules.find((rule) => rule.name === name)).toMatchObject({
      kind: "rule",
      mode: "enforce",
      key: "ip",
      match: "all requests",
    });
    expect(overview.top.byRequests.keys.find(({ rule }) => rule === name)).toMatchObject({ key: "127.0.0.x", count: 5, error: 0 });
    expect(overview.top.byRejections.keys.find(({ rule }) => rule === name)).toMatchObject({ key: "127.0.0.x", count: 2, error: 0 });
    const store = overview.stores.find(({ rules }) => rules.includes(name));
    expect(store).toMatchObject({ kind: "memory", size: 1 });
    // A store in the process is not timed.
    expect(store?.latency).toBeUndefined();
    expect(overview.instances).toMatchObject([{ self: true }]);
  });

  it("is not counted by a limit after it; by one before it, it is, and says so once", async () => {
    const after = await begin({ limit: { name: `after ${_}` } });
    expect((await ask(after, root)).headers["ratelimit"]).toBeUndefined();
    const before = await begin({ limit: { name: `before ${_}`, before: true, limit: 2 } });
    expect((await ask(before, root)).headers["ratelimit"]).toContain("r=1");
    await ask(before, root);
    expect((await ask(before, root)).status).toBe(429);
    expect(warnings.filter((warning) => warning.includes("FLOODGATE_DASHBOARD_LIMITED"))).toHaveLength(1);
  });

  it("keeps a limited number of streams, and forgets those whose client has gone", async () => {
    const port = await begin();
    const streams = await Promise.all(Array.from({ length: 32 }, () => openEvents(port, `${root}/data/live`)));
    expect(streams[0]?.message.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(await ask(port, `${root}/data/live`)).toMatchObject({ status: 429, headers: { "retry-after": "10" } });
    for (const stream of streams) stream.close();
    const statusOfNext = async () => {
      const next = await openEvents(port, `${root}/data/live`);
      next.close();
      return next.message.statusCode;
    };
    await expect.poll(statusOfNext).toBe(200);
  });

  it("keeps no stream for clients that leave while authorize is asked", async () => {
    let asked = 0;
    let answer: (yes: boolean) => void = () => undefined;
    const answered = new Promise<boolean>((resolve) => (answer = resolve));
    const authorize = (): Promise<boolean> | boolean => (++asked > 40 ? true : answered);
    const app = await start({ options: { authorize } });
    running.push(app);
    const left = Array.from({ length: 40 }, () => leave(app.port, `${root}/data/live`));
    await expect.poll(() => asked).toBe(40);
    await Promise.all(left.map((leaveNow) => leaveNow()));
    // The server sees that they have left.
    await expect.poll(() => new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)))).toBe(0);
    answer(true);
    const stream = await openEvents(app.port, `${root}/data/live`);
    stream.close();
    expect(stream.message.statusCode).toBe(200);
  });

  it("ends the streams when it is closed, and when the server is", async () => {
    const app = await start({});
    running.push(app);
    const first = await openEvents(app.port, `${root}/data/live`);
    app.dashboard.close();
    await first.ended;

    const other = await start({});
    running.push(other);
    const second = await openEvents(other.port, `${root}/data/live`);
    await second.next();
    const closed = new Promise((resolve) => other.server.close(resolve));
    await second.ended;
    await closed;
  });
});
