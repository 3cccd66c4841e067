import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { observe } from "@floodgate/core";
import { describe, expect, it, onTestFinished } from "vitest";
import { until } from "../../../../tools/test-servers/src/until.js";
import { presetNames } from "../../src/ask/presets.js";
import { few, startServe } from "../world.js";
import { head, sendRaw } from "./raw.js";

const asked = ["X-Forwarded-Method: GET", "X-Forwarded-Uri: /", "X-Forwarded-Host: shop.example", "X-Forwarded-For: 203.0.113.9"];
const original = ["X-Original-Method: GET", "X-Original-URI: /", "X-Original-Host: shop.example", "X-Original-For: 203.0.113.9"];
const ask = (preset: string, ...lines: string[]): string => head(`GET /ask/${preset} HTTP/1.1`, "Host: floodgate", ...lines);

describe("A peer that is not trusted", () => {
  it("is refused, and logged once in a while", async () => {
    const { ask: origin, log } = await startServe([few(1)], { trustedPeers: ["10.0.0.0/8"] });
    for (let i = 0; i < 5; i++) {
      const [response] = await sendRaw(origin, ask("nginx", ...original));
      expect(response).toMatchObject({ status: 403, body: "This peer may not ask. Add its address to trustedPeers.\n" });
    }
    expect(log.warnings).toEqual(["A peer that is not in trustedPeers has asked"]);
  });
});

it("A client that resets its connection has no address, and is not taken for a trusted peer of a Unix socket", async () => {
  const { ask: origin } = await startServe([few(1000)], { trustedPeers: ["10.0.0.0/8", "unix"] });
  let decisions = 0;
  onTestFinished(observe(() => decisions++));
  const { hostname, port } = new URL(origin);
  for (let i = 0; i < 50; i++) {
    const socket = connect(Number(port), hostname);
    await once(socket, "connect");
    socket.write(ask("nginx", ...original), () => socket.resetAndDestroy());
    await once(socket, "close");
  }
  await sendRaw(origin, ask("nginx", ...original));
  expect(decisions).toBe(0);
});

describe("What a client may have caused is denied with 403, because gateways let other statuses pass as our errors:", () => {
  it.each<[string, string[], string, string]>([
    ["an invalid method", ["X-Forwarded-Method: GE T", ...asked.slice(1)], "caddy", "400"],
    ["a method twice", ["X-Forwarded-Method: POST", ...asked], "caddy", "400"],
    ["a target twice", ["X-Forwarded-Uri: /free", ...asked], "caddy", "400"],
    ["a host twice", ["X-Forwarded-Host: other", ...asked], "caddy", "400"],
    ["a space in the target", [asked[0] as string, "X-Forwarded-Uri: / x"], "caddy", "400"],
    ["a header of a key twice", [...asked, "X-User: ann", "x-uSer: bob"], "caddy", "400"],
    ["a header of a named key twice", [...asked, "X-User: ann", "X-Tenant: a", "X-Tenant: b"], "caddy", "400"],
    ["a key that its rule demands, missing", asked, "caddy", "500"],
    ["a NUL in a header", [...original, "X-User: a\0b"], "nginx", "400"],
    ["a control character in a header", [...original, "X-User: a\x01b"], "nginx", "400"],
    ["an invalid header line", [...original, "no header"], "nginx", "400"],
    ["headers that are too large", [...original, `X-User: ${"x".repeat(70_000)}`], "nginx", "431"],
    [
      "headers that are far too large, so that the gateway is still sending them",
      [...original, `X-User: ${"x".repeat(4_000_000)}`],
      "nginx",
      "431",
    ],
    ["more lines than are worth reading", [...original, ...Array.from({ length: 1000 }, () => "a: b")], "nginx", "431"],
    ["two lengths", [...original, "Content-Length: 1", "Content-Length: 2"], "nginx", "400"],
  ])("%s", async (_, lines, preset, status) => {
    const rules = [few(9, { key: ["header:x-user", "tenant"], onMissingKey: "error" })];
    const { ask: origin } = await startServe(rules, { keys: { tenant: "header:x-tenant" } });
    const responses = await sendRaw(origin, ask(preset, ...lines, "Connection: close"));
    expect(responses).toMatchObject([{ status: 403, headers: { "x-floodgate-status": status } }]);
  });

  it("an unknown method and CONNECT", async () => {
    const { ask: origin } = await startServe([few(9)]);
    for (const line of ["BREW /ask/envoy/ HTTP/1.1", "CONNECT shop.example:443 HTTP/1.1", "GET /ask/envoy/ HTTP/9.9"]) {
      expect(await sendRaw(origin, head(line, "Host: floodgate", "Connection: close"))).toMatchObject([{ status: 403 }]);
    }
  });
});

describe("What only the gateway's config can cause is an error with a reason:", () => {
  it.each([
    ["no method", "nginx", original.slice(1), "The header x-original-method is missing"],
    ["no target", "traefik", [asked[0] as string], "The header x-forwarded-uri is missing"],
  ])("%s", async (_, preset, lines, reason) => {
    const { ask: origin, log } = await startServe([few(9)]);
    const responses = await sendRaw(origin, ask(preset, ...lines, "Connection: close"));
    expect(responses).toMatchObject([{ status: 500, body: expect.stringContaining(reason) }]);
    expect(log.warnings).toEqual([expect.stringContaining(reason)]);
  });

  it("a client's address is never the gateway's own", async () => {
    const { ask: origin, log } = await startServe([few(9)]);
    const responses = await sendRaw(origin, ask("traefik", ...asked.slice(0, 3), "Connection: close"));
    expect(responses).toMatchObject([{ status: 403, body: "The gateway sends no client address.\n" }]);
    expect(log.warnings).toEqual([expect.stringContaining("must send it in x-forwarded-for")]);
  });
});

it("A header that nginx passes on from its client is warned of once, if keys are read from headers", async () => {
  const { ask: origin, log } = await startServe([few(9, { key: "header:x-user" })]);
  await sendRaw(origin, ask("nginx", ...original, "X-User: ann", "Connection: close"));
  expect(log.warnings).toEqual([]);
  for (let i = 0; i < 2; i++) await sendRaw(origin, ask("nginx", ...original, "X-User: ann", "User-Agent: x", "Connection: close"));
  expect(log.warnings).toEqual([expect.stringContaining("A client can forge x-user")]);
});

it("The headers of one gateway mean nothing to the preset of another", async () => {
  const { ask: origin } = await startServe([few(1)]);
  const mixed = [...original, "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Uri: /other", "X-Forwarded-Method: POST"];
  const statuses = (await sendRaw(origin, ask("nginx", ...mixed), ask("nginx", ...mixed.slice(0, 4), "Connection: close"))).map(
    ({ status }) => status,
  );
  expect(statuses).toEqual([204, 403]);
});

describe("On one connection", () => {
  it("pipelined requests are answered in order", async () => {
    const { ask: origin } = await startServe([few(3)]);
    const requests = Array.from({ length: 6 }, (_, i) => ask("caddy", ...asked, ...(i === 5 ? ["Connection: close"] : [])));
    const responses = await sendRaw(origin, requests.join(""));
    expect(responses.map(({ status }) => status)).toEqual([204, 204, 204, 429, 429, 429]);
  });

  it("HEAD and bodies are taken, and bodies are not read as requests", async () => {
    const { ask: origin } = await startServe([few(9)]);
    const smuggled = ask("caddy", ...asked);
    const responses = await sendRaw(
      origin,
      head("HEAD /ask/traefik HTTP/1.1", "Host: floodgate", ...asked),
      head("POST /ask/traefik HTTP/1.1", "Host: floodgate", ...asked, `Content-Length: ${smuggled.length}`) + smuggled,
      `${head("POST /ask/envoy/x HTTP/1.1", "Host: floodgate", asked[3] as string, "Transfer-Encoding: chunked")}2\r\nab\r\n0\r\n\r\n`,
      head("POST /ask/envoy/x HTTP/1.1", "Host: floodgate", asked[3] as string, "Content-Length: 200000"),
      "y".repeat(200_000),
      ask("caddy", ...asked, "Connection: close"),
    );
    expect(responses.map(({ status }) => status)).toEqual([204, 204, 200, 200, 204]);
  });

  it("an expectation is no reason to answer otherwise: 417 would pass as our error", async () => {
    const { ask: origin } = await startServe([few(1)]);
    for (const status of [204, 429]) {
      expect(await sendRaw(origin, ask("caddy", ...asked, "Expect: more", "Connection: close"))).toMatchObject([{ status }]);
    }
  });

  it("an upgrade is decided like any other request, and closes the connection, on which Node reads nothing more", async () => {
    const { ask: origin } = await startServe([few(1)]);
    const upgrade = ["Connection: upgrade", "Upgrade: websocket"];
    for (const status of [204, 429]) {
      expect(await sendRaw(origin, ask("caddy", ...asked, ...upgrade))).toMatchObject([{ status, headers: { connection: "close" } }]);
    }
  });
});

it("Idle connections and a client that sends byte by byte keep nobody waiting", async () => {
  const { ask: origin } = await startServe([few(1)]);
  const { hostname, port } = new URL(origin);
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const open = (): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => resolve(socket)).on("error", reject);
      sockets.push(socket);
    });
  await Promise.all(Array.from({ length: 500 }, open));
  const slow = await open();
  slow.write("GET /ask/caddy HT");
  const responses = await sendRaw(origin, ask("caddy", ...asked), ask("caddy", ...asked, "Connection: close"));
  expect(responses.map(({ status }) => status)).toEqual([204, 429]);
  slow.write("TP/1.1\r\n");
});

describe("Rules that a gateway cannot keep are refused", () => {
  const queue = { name: "queue", key: "global", policy: { algorithm: "leaky-bucket", capacity: 5, leak: 1, every: "1s" } };

  it("at the start", async () => {
    await expect(startServe([few(1), queue])).rejects.toThrow(/limits\.json:1:\d+: .*"queue" holds requests \(leaky-bucket\)/);
  });

  const concurrency = { algorithm: "concurrency", limit: 5, hold: "30s" };

  it.each(
    presetNames.flatMap((preset) =>
      (
        [
          ["few", "holds requests", { plans: { slow: queue.policy } }],
          [
            "uploads",
            "holds units until a request has ended",
            { name: "uploads", limit: undefined, window: undefined, policy: concurrency },
          ],
          ["few", "holds units until a request has ended", { plans: { small: concurrency } }],
          ["few", "holds units until a request has ended", { hold: "30s" }],
          ["few", "has `settle`", { settle: "header:x-cost" }],
          ["few", "has `refundWhen`", { refundWhen: "5xx" }],
        ] as const
      ).map(([rule, reason, options]) => [preset, JSON.stringify(options), `"${rule}" ${reason}`, options] as const),
    ),
  )("by %s: %s", async (preset, _, reason, options) => {
    await expect(startServe([few(1, options)], { presets: [preset], plan: "header:x-plan" })).rejects.toThrow(reason);
  });

  it.each([
    ["settle", "header:x-cost"],
    ["refundWhen", "5xx"],
  ])("by the JSON API alone: `%s`, because it sees no response", async (option, value) => {
    const started = startServe([few(1, { [option]: value })], { presets: [], apiListen: "127.0.0.1:0" });
    await expect(started).rejects.toThrow(`"few" has \`${option}\``);
  });

  it("in a new version, so that the last good one stays in force", async () => {
    const { ask: origin, rulesFile } = await startServe([few(1)]);
    const refused: unknown[] = [];
    onTestFinished(
      observe((event) => {
        if (event.type === "rules-refused") refused.push(event.error);
      }),
    );
    writeFileSync(rulesFile, JSON.stringify({ rules: [queue] }));
    await until("the rules are refused", async () => refused.length > 0);
    expect(refused).toEqual([expect.objectContaining({ message: expect.stringContaining('"queue" holds requests (leaky-bucket)') })]);
    const responses = await sendRaw(origin, ask("caddy", ...asked), ask("caddy", ...asked, "Connection: close"));
    expect(responses.map(({ status }) => status)).toEqual([204, 429]);
  });

  it("but not if they are in shadow mode", async () => {
    const { ask: origin } = await startServe([few(1), { ...queue, mode: "shadow" }]);
    expect(await sendRaw(origin, ask("caddy", ...asked, "Connection: close"))).toMatchObject([{ status: 204 }]);
  });
});
