import { RateLimit } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { table } from "./lib/report.mjs";

/** The most CPU time of a decision, in microseconds, however its request is written: HTTP/1.1 servers take 16 kB of headers by default. */
const mostUs = { 16384: 500, 65536: 2500 };
const limit = { limit: 1e9, window: "1h" };

const paths = {
  "/a": "/a",
  "/": "/",
  "%2f": "%2f",
  "/..": "/..",
  "/.": "/.",
  "%25": "%25",
  "/%ff": "/%ff",
  "\\": "\\",
  "/a;x": "/a;x",
  "%5c..": "%5c..",
  "/a%2f": "/a%2f",
  "\xe9": "\xe9",
};
const lengths = [16, 256, 1024, 16_384, 65_536];

/** The dearest requests, by what is large in them. Prints the CPU time of each decision, and fails above the bound. */
export async function decision() {
  const rows = [];
  const over = [];
  const measure = (name, size, decide) => {
    const us = cpuUs(decide);
    const most = size <= 16_384 ? mostUs[16_384] : mostUs[65_536];
    if (us > most) over.push(`${name}: ${us.toFixed(0)} µs, above ${most}`);
    return us.toFixed(1);
  };
  const limiter = limiterOf(100);
  for (const [name, unit] of Object.entries(paths)) {
    const cells = lengths.map((length) => {
      const path = `/${unit.repeat(Math.ceil(length / unit.length)).slice(0, length - 1)}`;
      return measure(`path of ${name}, ${length} characters`, length, () => limiter.decide({ path, key: "a", headers: {} }));
    });
    rows.push([`path of ${name}`, ...cells]);
  }
  rows.push([
    "key",
    ...lengths.map((length) =>
      measure(`key, ${length} characters`, length, () => limiter.decide({ path: "/api/keyed", key: "k".repeat(length), headers: {} })),
    ),
  ]);
  rows.push([
    "headers, 8 characters each",
    ...lengths.map((length) => {
      const headers = Object.fromEntries(Array.from({ length: length / 8 }, (_, i) => [`h${i}`, "1"]));
      return measure(`headers, ${length} characters`, length, () => limiter.decide({ path: "/api/keyed", key: "a", headers }));
    }),
  ]);
  const counts = [1, 10, 100, 1000];
  const byRules = ["/api/keyed", "/x/..%5c../y", "/%2f..".repeat(2700)].map((path) => [
    path.slice(0, 20),
    ...counts.map((count) => {
      const many = limiterOf(count);
      return cpuUs(() => many.decide({ path, key: "a", headers: {} })).toFixed(1);
    }),
  ]);
  if (over.length > 0) throw new Error(`Decisions above the bound:\n${over.join("\n")}`);
  return [
    table(
      `CPU time of one decision among 100 rules, in memory: µs, by size in characters (bound: ${mostUs[16_384]} µs up to 16,384, ${mostUs[65_536]} above)`,
      ["", ...lengths],
      rows,
    ),
    table("The same by the number of rules: µs. A path that may lead anywhere counts under all of them", ["path", ...counts], byRules),
  ].join("\n");
}

function limiterOf(count) {
  const rules = Array.from({ length: count }, (_, i) => {
    const match = [
      { path: `/api/things-${i}/:id` },
      { path: `/:a/parts-${i}` },
      { path: `/area-${i}/*`, method: "POST" },
      { path: "/api/keyed", header: { "x-tenant": `${i}` } },
    ][i % 4];
    return { name: `rule-${i}`, key: "ip", match, ...limit };
  });
  rules.push({ name: "keyed", key: "user", match: { path: "/api/keyed" }, ...limit });
  const reader = {
    identity: (request) => request,
    method: () => "GET",
    path: ({ path }) => path,
    header: ({ headers }, name) => headers[name],
    remoteAddress: () => "192.0.2.1",
    clientIp: () => "192.0.2.1",
    trustsProxy: () => true,
    route: () => undefined,
  };
  return new RateLimit("bench", { rules, keys: { user: ({ key }) => key } }, [], reader, () => memoryStore());
}

/** The median of some rounds, in CPU time, so that a busy machine does not count. */
function cpuUs(run) {
  const times = 40;
  const rounds = Array.from({ length: 7 }, () => {
    const { user, system } = process.cpuUsage();
    for (let i = 0; i < times; i++) run();
    const after = process.cpuUsage();
    return (after.user + after.system - user - system) / times;
  });
  return rounds.sort((a, b) => a - b)[3];
}
