import { afterAll, describe, expect, it } from "vitest";
import { few, startServe } from "../world.js";
import { inParallel, inPieces, mutate, Random, seed, talk, watchDeaths } from "./wire.js";

/** About a minute. */
const runs = 5000;
const longestMs = 60_000;
/** What mutated bytes ask for is not known, so any number of answers may come. No request is a HEAD. */
const methods = Array<string>(100_000).fill("GET");

const { deaths, stop } = watchDeaths();
afterAll(stop);

const rules = [
  few(1e4, { key: "ip" }),
  { name: "user", key: "header:x-user", onMissingKey: "ip", limit: 1e4, window: "365d", match: { path: "/users/*" } },
  { name: "tenant", key: ["ip", "tenant"], onMissingKey: "ip", limit: 3, window: "365d", match: { method: ["POST", "PUT"] } },
];

const methodsAsked = ["GET", "POST", "BREW", "G\xe4T"];
const targets = [
  "/",
  "/users/1?a=b",
  "*",
  "http://shop.example/x",
  "/%ff/..%2f//\\..;x",
  `/${"%2e/".repeat(2000)}`,
  `/${"/".repeat(20_000)}`,
];
const addresses = ["203.0.113.9", "2001:db8::1", "::ffff:1.2.3.4", "1.2.3.4:5, unknown", "for=_x", '"', ",,,", "\xff"];
const extra = [
  "X-User: ann",
  "X-User: ann\r\nx-user: bob",
  "X_User: ann",
  "Authorization: Bearer a.e30.b",
  "Authorization: Bearer a.eyJ0ZW5hbnQiOlsxXX0.b",
  `Cookie: ${"a=b; ".repeat(500)}`,
  "Expect: 100-continue",
  "Expect: more",
  "Connection: Upgrade\r\nUpgrade: websocket",
  'Forwarded: for=1.1.1.1, for="[::1]:x"',
  "Content-Length: 3",
  "Transfer-Encoding: chunked",
  ...Array.from({ length: 3 }, () => "X-Real-IP: 9.9.9.9\r\n".repeat(90).trimEnd()),
];

/** A request of a gateway, mostly as its preset demands. */
function ask(random: Random): string {
  const preset = random.from(["nginx", "caddy", "traefik", "haproxy", "apache", "envoy", "generic", "none"]);
  const prefix = preset === "nginx" ? "X-Original" : "X-Forwarded";
  const target = random.from(targets);
  const lines = preset === "envoy" ? [`GET /ask/envoy${target} HTTP/1.1`] : [`GET /ask/${preset} HTTP/1.1`];
  lines.push("Host: floodgate");
  if (preset !== "envoy") lines.push(`${prefix}-Method: ${random.from(methodsAsked)}`, `${prefix}-Uri: ${target}`, `${prefix}-Host: shop`);
  lines.push(`${prefix}-For: ${random.from(addresses)}`);
  for (let many = random.below(3); many > 0; many--) lines.push(random.from(extra));
  return `${lines.join("\r\n")}\r\n\r\n${random.oneIn(4) ? "abc" : ""}`;
}

const bodies = [
  { rule: "few", key: "ann" },
  { rule: "tenant", key: ["a", 7], cost: 2, plan: "free", status: 429 },
  {
    checks: [
      { rule: "few", key: "ann" },
      { rule: "user", key: "é\u0000" },
    ],
  },
  { request: { method: "POST", path: "/%ff//..", host: "a", headers: { "x-user": "ann", authorization: "Bearer a.b.c" }, ip: "::1" } },
  { receipt: "fb1.eyJhIjoxfQ", cost: 3 },
  { rule: "few", key: "ann", for: "1h" },
  { rule: "__proto__", key: { missingKeyIp: "1.1.1.1" } },
  [[[[[[[]]]]]]],
].map((body) => JSON.stringify(body));

/** A request of an app to the JSON API. Its body is changed by itself too, so that its length stays right. */
function call(random: Random): string {
  const path = random.from(["check", "check", "settle", "refund", "status", "reset", "block", "unblock", "openapi.json", ""]);
  let body = random.from(bodies);
  if (random.oneIn(40)) {
    const levels = 1 + random.below(20_000);
    const [begin, inner, end] = random.from([
      ["[", "", "]"],
      ['{"a":', "1", "}"],
      ['{"rule":"few","key":[', "1", "]}"],
    ] as const);
    body = begin.repeat(levels) + inner + end.repeat(levels);
  } else if (random.oneIn(3)) body = mutate(random, body);
  const length = random.oneIn(5) ? `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : undefined;
  const method = random.oneIn(8) ? random.from(["GET", "PUT", "OPTIONS"]) : "POST";
  return `${method} /v1/${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n${length ?? `Content-Length: ${body.length}\r\n\r\n${body}`}`;
}

/** What a gateway's config or its headers may cause. All else is an error of ours. */
const isExpected = /^The header [\w-]+ is missing: the gateway must set it\.\n$|^The gateway sends no client address\.\n$/;

describe.each<[string, (random: Random) => string]>([
  ["The decision server", ask],
  ["The JSON API", call],
])("%s", (name, make) => {
  it("answers random and changed bytes well formed, ends no process, and has no error of its own", async () => {
    console.log(`FLOODGATE_SEED=${seed} repeats this run`);
    const ends: (() => void | Promise<void>)[] = [];
    const { ask, api } = await startServe(rules, { apiListen: "127.0.0.1:0", keys: { tenant: "jwt:tenant" }, logLevel: "silent" }, (end) =>
      ends.unshift(end),
    );
    const port = Number(new URL(make === call ? api : ask).port);
    const statuses = new Map<number, number>();
    const faults: string[] = [];
    await inParallel(runs, 24, async (run) => {
      const random = new Random(seed + run * 7 + name.length);
      let text = "";
      for (let many = random.oneIn(4) ? 3 : 1; many > 0; many--) text += make(random);
      if (random.below(3) !== 0) text = mutate(random, text);
      const fault = (what: string): void => void faults.push(`run ${run}: ${what}, to ${JSON.stringify(text.slice(0, 800))}`);
      try {
        const options = { methods, isEnough: () => false, longestMs, quietMs: 30 };
        const { answers, hangs } = await talk(port, inPieces(random, text), options);
        if (hangs) fault("hangs");
        for (const { status, headers, body } of answers) {
          const meant = Number(headers.get("x-floodgate-status") ?? status);
          statuses.set(meant, (statuses.get(meant) ?? 0) + 1);
          if (meant >= 500 && !isExpected.test(body)) fault(`${meant} ${body}`);
        }
      } catch (error) {
        fault(`${error}`);
      }
      for (const death of deaths.splice(0)) fault(`ended the process: ${(death as Error).stack}`);
    });
    for (const end of ends) await end();
    console.log(
      [...statuses]
        .sort()
        .map(([status, many]) => `${status}: ${many}`)
        .join(", "),
    );
    expect(faults.slice(0, 5), `${faults.length} faults, seed ${seed}`).toEqual([]);
    expect(statuses.get(make === call ? 200 : 204)).toBeGreaterThan(runs / 100);
  }, 600_000);
});
