import assert from "node:assert/strict";
import { once } from "node:events";
import type { ClientHttp2Stream } from "node:http2";
import { fixedWindow } from "@floodgate/core";
import type { Handler, LimitSetup, Reply } from "./adapter.js";
import { Http2Client } from "./clients.js";
import type { AdapterSuite } from "./web.js";
import { gate, turn } from "./world.js";

const policy = fixedWindow({ limit: 2, window: "1m" });
const one = fixedWindow({ limit: 1, window: "1m" });
const names = ["ratelimit-policy", "ratelimit", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

/** Headers of other responses. The last ones tell shared caches more than Cache-Control does. */
const ofAnotherBody = {
  "content-encoding": "gzip",
  "content-language": "de",
  "content-location": "/page.de",
  "content-disposition": "attachment",
  "content-range": "bytes 0-9/10",
  "content-digest": "sha-256=:AAAA:",
  etag: '"page"',
  "last-modified": "Fri, 27 Nov 2026 10:00:00 GMT",
  "cdn-cache-control": "max-age=600",
  "cloudflare-cdn-cache-control": "max-age=600",
  "surrogate-control": "max-age=600",
  "x-accel-expires": "600",
};

async function* chunks(): AsyncGenerator<string> {
  for (const chunk of ["one ", "two ", "three"]) {
    await turn();
    yield chunk;
  }
}

/** The ways to make a response: name, reply, expected text. */
const replies: [string, () => Reply, string][] = [
  ["of the framework", () => ({ body: { served: true } }), '{"served":true}'],
  ["raw", () => ({ raw: true, body: { served: true } }), '{"served":true}'],
  ["streamed", () => ({ chunks: chunks() }), "one two three"],
];

/** Responses to allowed and limited requests, raw and streamed ones, and those of failing handlers and outer middlewares. */
export function responseCases({ adapter, it }: AdapterSuite): void {
  it("one line limits an app per client, in memory", async (web) => {
    const app = await web.start({ limits: [{ limit: 2, window: "365d" }], ownStores: true });
    assert.deepEqual(await app.statuses(3), [200, 200, 429]);
  });

  it("each middleware without a store gets its own", async (web) => {
    const limit = { policy: fixedWindow({ limit: 2, window: "365d" }), key: "global" } as const;
    const steps = [
      { route: "/a", limits: [0] },
      { route: "/b", limits: [1] },
    ];
    const app = await web.start({ limits: [limit, limit], steps, ownStores: true });
    assert.deepEqual(await app.statuses(3, "/a"), [200, 200, 429]);
    assert.equal((await app.get("/b")).status, 200);
  });

  it("an allowed request is served as usual, and its handler finds the decision", async (web) => {
    const app = await web.start({ name: "api", policy, cost: 2 });
    const { status, headers, body } = await app.get();
    assert.deepEqual([status, body.served, headers["retry-after"], headers["cache-control"]], [200, true, undefined, undefined]);
    const { allowed, limit, remaining, resetAfterMs, cost, name, atMs } = body.decision;
    assert.deepEqual([allowed, limit, remaining, resetAfterMs, cost, name, atMs], [true, 2, 0, 45_000, 2, "api", web.nowMs]);
  });

  it("a limited request gets a 429 problem, one Retry-After and no-store, and does not reach its handler", async (web) => {
    let served = 0;
    const limit: LimitSetup = { name: "api", policy, headers: ["standard", "legacy"] };
    const app = await web.start({ limits: [limit], handler: () => ({ body: ++served }) });
    await app.statuses(2);
    const { status, headers, body, lines } = await app.get();
    assert.deepEqual([status, served, app.errors], [429, 2, []]);
    assert.equal(headers["content-type"]?.split(";")[0], adapter.problemType ?? "application/problem+json");
    assert.deepEqual([body.status, body["violated-policies"]], [429, ["api"]]);
    assert.deepEqual([lines("retry-after"), lines("cache-control")], [["45"], ["no-store"]]);
  });

  it("HEAD and OPTIONS requests count too, and a limited HEAD request gets the 429 headers and no body", async (web) => {
    const app = await web.start({ policy });
    const head = await app.send("head");
    assert.equal(head.status, 200);
    assert.match(head.headers["ratelimit"] ?? "", /;r=1;/);
    assert.match((await app.send("options")).headers["ratelimit"] ?? "", /;r=0;/);
    for (const method of ["get", "head", "options"] as const) assert.equal((await app.send(method)).status, 429, method);
    const { headers, text } = await app.send("head");
    assert.deepEqual([headers["retry-after"], text], ["45", ""]);
  });

  if (adapter.http2 === true)
    it("a limited request of HTTP/2 gets the 429 headers, also if it is a HEAD request, whose stream cannot be written", async (web) => {
      const app = await web.start({ limits: [{ policy }], http2: true });
      const client = await Http2Client.connect(app.server);
      const answers: unknown[] = [];
      const head = adapter.mutesHead === true ? "GET" : "HEAD";
      for (const method of [head, "GET", head, "GET", "OPTIONS"]) {
        client.ask({ method });
        const [headers] = await once(client.streams.at(-1) as ClientHttp2Stream, "response");
        answers.push([headers[":status"], headers["retry-after"], /;r=[01];t=45$/.test(headers["ratelimit"])]);
      }
      const limited = [429, "45", true];
      assert.deepEqual([answers, app.errors], [[[200, undefined, true], [200, undefined, true], limited, limited, limited], []]);
      await client.leave();
    });

  it("requests for unknown routes count too", async (web) => {
    const app = await web.start({ policy });
    assert.deepEqual(await app.statuses(3, "/nowhere"), [404, 404, 429]);
  });

  it("a limit of core's options is invalid when the middleware is made, and so is one of the adapter's own", async (web) => {
    const valid = { limit: 1, window: "1m" } as const;
    await assert.rejects(web.start({ ...valid, kye: "ip" } as never), { code: "FLOODGATE_UNKNOWN_OPTION" });
    await assert.rejects(web.start({ ...valid, onLimited: "no" } as never), { code: "FLOODGATE_INVALID_OPTION" });
  });

  const limit = (name: string): LimitSetup & { name: string } => ({ name, policy, headers: ["standard", "legacy"] });
  for (const [kind, reply, text] of replies) {
    it(`a response ${kind} arrives complete, each header once: behind one limit, two limits, and an asynchronous limit`, async (web) => {
      for (const passed of [[limit("a")], [limit("b"), limit("c")], [{ ...limit("d"), key: async () => "everyone" }]]) {
        const app = await web.start({ limits: passed, handler: reply });
        const response = await app.get();
        assert.deepEqual([response.status, response.text], [200, text]);
        assert.deepEqual(
          names.map((name) => response.lines(name)),
          [
            [passed.map(({ name }) => `"${name}";q=2;w=60`).join(", ")],
            [passed.map(({ name }) => `"${name}";r=1;t=45`).join(", ")],
            ["2"],
            ["1"],
            [`${Math.ceil((web.nowMs + 45_000) / 1000)}`],
          ],
        );
      }
    });
  }

  it("a response to a HEAD request has the same headers and no body", async (web) => {
    for (const [kind, handler] of replies) {
      const app = await web.start({ limits: [{ name: kind, policy }], handler });
      const { status, headers, text } = await app.send("head");
      assert.deepEqual([status, headers["ratelimit"], text], [200, `"${kind}";r=1;t=45`, ""]);
    }
  });

  const failures: Handler[] = [
    () => {
      throw new Error("handler");
    },
    () => Promise.reject(new Error("handler")),
  ];
  it("a response has the rate limit headers when the handler throws or rejects", async (web) => {
    for (const [i, handler] of failures.entries()) {
      const app = await web.start({ limits: ["a", "b"].map((name) => ({ name: `${name}${i}`, policy })), handler });
      const { status, lines } = await app.get();
      assert.deepEqual([status, lines("ratelimit")], [500, [`"a${i}";r=1;t=45, "b${i}";r=1;t=45`]]);
      assert.deepEqual(app.codes, ["handler"]);
    }
  });

  it("a response has the headers of the limits before the one that failed", async (web) => {
    const app = await web.start({ limits: [{ policy }, { name: "keyless", policy, key: () => undefined, onMissingKey: "error" }] });
    const { status, lines } = await app.get();
    assert.deepEqual([status, lines("ratelimit"), app.codes], [500, ['"default";r=1;t=45'], ["FLOODGATE_MISSING_KEY"]]);
  });

  it("the option `body` replaces the 429 body and keeps the status and the headers; HEAD requests do not get it", async (web) => {
    for (const [name, body, type, text] of [
      ["text", "Slow down, €", /^text\/plain; ?charset=utf-8$/i, "Slow down, €"],
      ["empty", "", /^text\/plain; ?charset=utf-8$/i, ""],
      ["object", { error: "Too many requests", code: 42 }, /^application\/json\b/, '{"error":"Too many requests","code":42}'],
      ["array", ["slow", "down"], /^application\/json\b/, '["slow","down"]'],
    ] as const) {
      const app = await web.start({ name, policy: one, body });
      assert.equal((await app.get()).status, 200);
      const response = await app.get();
      assert.deepEqual([response.status, response.text], [429, text]);
      assert.match(response.lines("content-type").join(), type);
      const headers = ["retry-after", "ratelimit", "cache-control"].map(response.lines);
      assert.deepEqual(headers, [["45"], [`"${name}";r=0;t=45`], ["no-store"]]);
      const head = await app.send("head");
      assert.deepEqual([head.status, head.text], [429, ""]);
    }
  });

  if (adapter.presets === true)
    it("a limited response has no header of an earlier middleware that describes another body or lets shared caches keep it, and keeps the others", async (web) => {
      const none = fixedWindow({ limit: 0, window: "1m" });
      const kept = { vary: "origin", "content-security-policy": "default-src 'self'", "x-kept": "yes", "set-cookie": "a=b" };
      const limits: LimitSetup[] = [
        { policy: none },
        { policy: none, body: "Slow down" },
        { policy: none, onLimited: () => ({ body: "own" }) },
      ];
      for (const presets of [ofAnotherBody, { "content-length": "999" }, { "transfer-encoding": "chunked" }]) {
        for (const limit of limits) {
          const app = await web.start({ limits: [limit], presets: { ...kept, ...presets } });
          for (const method of ["get", "head"] as const) {
            const { status, headers, text, lines } = await app.send(method);
            assert.deepEqual([status, text.length > 0], [429, method === "get"]);
            for (const [name, value] of Object.entries(kept)) assert.deepEqual(lines(name), [value], name);
            for (const [name, value] of Object.entries(ofAnotherBody)) assert.notEqual(headers[name], value, name);
            assert.notEqual(headers["content-length"], "999");
            assert.deepEqual(lines("cache-control"), ["no-store"]);
          }
        }
      }
    });

  if (adapter.outer !== true) return;
  it("an outer middleware sees the same headers as the client, allowed and limited, whatever makes the response", async (web) => {
    for (const [kind, handler] of replies) {
      const seen: (string | undefined)[][] = [];
      let reached = gate();
      const app = await web.start({
        limits: ["a", "b"].map((name) => ({ name: `${name} ${kind}`, policy: one })),
        handler,
        outer: (header) => {
          seen.push(["ratelimit-policy", "ratelimit", "retry-after"].map(header));
          reached.open();
        },
      });
      for (const status of [200, 429]) {
        reached = gate();
        const response = await app.get();
        await reached.opened;
        assert.equal(response.status, status);
        const sent = ["ratelimit-policy", "ratelimit", "retry-after"].map((name) => response.lines(name)[0]);
        assert.deepEqual(seen.pop(), sent);
        assert.equal(sent[2] !== undefined, status === 429);
      }
    }
  });
}
