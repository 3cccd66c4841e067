import { cpuUs } from "./lib/child.mjs";
import { limitOf } from "./lib/rate-limit.mjs";
import { median, table } from "./lib/report.mjs";

/** The most CPU time of a decision, in microseconds, however its request is written: HTTP/1.1 servers take 16 kB of headers by default. */
const maxUs = { 16384: 500, 65536: 2500 };
const limit = { limit: 1e9, window: "1h" };

/** What long paths repeat. */
const units = ["/a", "/", "%2f", "/..", "/.", "%25", "/%ff", "\\", "/a;x", "%5c..", "/a%2f", "\xe9", "/a%252f", `/%${"25".repeat(40)}`];
const lengths = [16, 256, 1024, 16_384, 65_536];

/** The dearest requests by what is large in them, of a length. */
const requests = {
  ...Object.fromEntries(units.map((unit) => [`path of ${unit.slice(0, 20)}`, (length) => ({ path: `/${repeated(unit, length - 1)}` })])),
  "path of %, at last /%3f": (length) => ({ path: `${repeated("/%%%", length - 4)}/%3f` }),
  key: (length) => ({ user: repeated("k", length) }),
  "headers, 8 characters each": (length) => ({
    headers: Object.fromEntries(Array.from({ length: length / 8 }, (_, i) => [`h${i}`, "1"])),
  }),
};

const repeated = (unit, length) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length);

/** Prints the CPU time of each decision, and fails above the bound. */
export async function decision() {
  const over = [];
  const limiter = limiterOf(100);
  const rows = Object.entries(requests).map(([name, requestOf]) => [
    name,
    ...lengths.map((length) => {
      const us = decisionUs(limiter, requestOf(length));
      const most = maxUs[length <= 16_384 ? 16_384 : 65_536];
      if (us > most) over.push(`${name}, ${length} characters: ${us.toFixed(0)} µs, above ${most}`);
      return us.toFixed(1);
    }),
  ]);
  const counts = [1, 10, 100, 1000];
  const byRules = ["/api/keyed", "/x/..%5c../y", "/%2f..".repeat(2700)].map((path) => [
    path.slice(0, 20),
    ...counts.map((count) => decisionUs(limiterOf(count), { path }).toFixed(1)),
  ]);
  if (over.length > 0) throw new Error(`Decisions above the bound:\n${over.join("\n")}`);
  return [
    table(
      `CPU time of one decision among 100 rules, in memory: µs, by size in characters (bound: ${maxUs[16_384]} µs up to 16,384, ${maxUs[65_536]} above)`,
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
  return limitOf(rules);
}

/** The median of some rounds, in CPU time, so that a busy machine does not count. */
function decisionUs(limiter, given) {
  const request = { method: "GET", path: "/api/keyed", headers: {}, user: "a", ...given };
  const times = 40;
  const rounds = Array.from({ length: 7 }, () => {
    const startUs = cpuUs();
    for (let i = 0; i < times; i++) limiter.decide({ ...request });
    return (cpuUs() - startUs) / times;
  });
  return median(rounds);
}
