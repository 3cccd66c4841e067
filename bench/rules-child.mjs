import { serve } from "./lib/child.mjs";
import { limitOf } from "./lib/rate-limit.mjs";

/** Decides requests under a number of rules; three of them match, or the only one. Reports the ns per request of each round. */
const count = Number(process.argv[2]);
const roundNs = 60e6;
const users = 1000;

const limit = { limit: 1e9, window: "1h" };
const matching = [
  { name: "everyone", key: "global", ...limit },
  { name: "posts", key: "user", match: { method: "POST", path: "/api/posts/:id/comments" }, ...limit },
  { name: "writes", key: "ip", match: { method: ["POST", "PUT"], path: "/api/*", header: { "x-api-version": "2" } }, ...limit },
];

/** The other rules of a large file: other paths, patterns, methods and headers. */
function other(i) {
  const matches = [
    { path: `/api/things-${i}/:id` },
    { method: "GET", path: `/api/posts/:id/parts-${i}` },
    { method: "POST", path: `/area-${i}/*` },
    { path: "/api/*", header: { "x-tenant": `tenant-${i}` } },
    { header: { "x-api-key": `key-${i}` } },
  ];
  return { name: `other-${i}`, key: "ip", match: matches[i % matches.length], ...limit };
}

const rules = Array.from({ length: count }, (_, i) => {
  // The matching rules are spread over the list.
  const place = Math.floor((i * Math.min(count, 3)) / count);
  const first = i === 0 || Math.floor(((i - 1) * Math.min(count, 3)) / count) !== place;
  return first ? matching[place] : other(i);
});

const headers = { "x-api-version": "2", "x-tenant": "tenant-of-nobody", "x-api-key": "key-of-nobody" };
const limiter = limitOf(rules);
const requestOf = (user, path) => ({ method: "POST", path, headers, user });

function nsOf(times) {
  const requests = Array.from({ length: times }, (_, i) => requestOf(i % users, `/api/posts/${i % 997}/comments`));
  const start = process.hrtime.bigint();
  let passed = 0;
  for (const request of requests) if (limiter.decide(request).action === "pass") passed++;
  const ns = Number(process.hrtime.bigint() - start) / times;
  if (passed !== times) throw new Error(`${passed} of ${times} requests passed`);
  return ns;
}

function warmUp() {
  const { decision } = limiter.decide(requestOf(0, "/api/posts/1/comments"));
  if (decision === undefined) throw new Error("No rule matched");
  let times = 10_000;
  for (let i = 0; i < 8; i++) times = Math.max(1000, Math.round(roundNs / nsOf(times)));
  times = Math.min(times, 100_000);
  nsOf(times);
  roundTimes = times;
  return times;
}

let roundTimes = 0;
serve((question) => (question === "warm up" ? warmUp() : nsOf(roundTimes)));
