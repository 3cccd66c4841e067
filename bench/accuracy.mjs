import { createLimiter, slidingWindowCounter, slidingWindowLog } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { bursts, fromLog, polling, timed, timedLimit, zipf } from "./accuracy/traffic.mjs";
import { progress, table } from "./lib/report.mjs";

const window = "1m";
const windowMs = 60_000;

const counters = [
  ["1 bucket", { buckets: 1 }],
  ["2 buckets", { buckets: 2 }],
  ["6 buckets", { buckets: 6 }],
  ["10 buckets", { buckets: 10 }],
  ["60 buckets", { buckets: 60 }],
  ["6, strict", { buckets: 6, strict: true }],
  ["60, strict", { buckets: 60, strict: true }],
];

/** The shares of requests that the exact log limits. */
const touched = [0.01, 0.05, 0.2];

/**
 * How wrong the estimate of a sliding window counter is: how many requests it decides otherwise than the exact log, and the most that any
 * window held.
 */
export async function accuracy({ log }) {
  const traffic = [
    ["Zipf", zipf()],
    ["bursts", bursts()],
    ["a client that polls", polling()],
    ["a client that times its bursts", timed(), [timedLimit]],
  ];
  if (log !== undefined) traffic.unshift(["real traffic", await fromLog(log)]);
  const parts = traffic.map(([name, requests, limits = limitsOf(requests)]) => {
    progress(`accuracy: ${name}`);
    return table(
      `${name}: ${requests.length.toLocaleString("en")} requests, a window of a minute`,
      ["limit", "the log limits", ...counters.map(([counter]) => counter)],
      limits.map((limit) => rowOf(requests, limit)),
    );
  });
  const legend =
    "Of all requests, in percent: allowed although the log rejects + rejected although the log allows; then the most units in any minute, as a multiple of the limit.";
  return `${parts.join("\n")}\n${legend}\n${log === undefined ? "For real traffic, give an access log of the combined format: --log access.log\n" : ""}`;
}

function rowOf(requests, limit) {
  const exact = decide(requests, slidingWindowLog({ limit, window }));
  const all = counters.map(([, options]) => {
    const estimated = decide(requests, slidingWindowCounter({ limit, window, ...options }));
    let allowed = 0;
    let rejected = 0;
    estimated.forEach((passed, i) => {
      if (passed && !exact[i]) allowed++;
      if (!passed && exact[i]) rejected++;
    });
    const percent = (count) => ((100 * count) / requests.length).toFixed(2);
    return `${percent(allowed)}+${percent(rejected)} ${(mostInWindow(requests, estimated) / limit).toFixed(2)}`;
  });
  const limited = exact.filter((passed) => !passed).length;
  return [limit, `${((100 * limited) / requests.length).toFixed(1)} %`, ...all];
}

/** The limits at which the log limits about these shares of the requests. */
function limitsOf(requests) {
  const limits = touched.map((share) => {
    let [low, high] = [1, requests.length];
    while (low < high) {
      const limit = (low + high) >> 1;
      const limited = decide(requests, slidingWindowLog({ limit, window })).filter((passed) => !passed).length;
      if (limited <= share * requests.length) high = limit;
      else low = limit + 1;
    }
    return low;
  });
  return [...new Set(limits)];
}

/** Whether each request passes. */
function decide(requests, policy) {
  let nowMs = 0;
  const limiter = createLimiter({ name: "accuracy", policy, store: memoryStore({ clock: () => nowMs }) });
  return requests.map(({ atMs, key }) => {
    nowMs = atMs;
    return limiter.consume(key).allowed;
  });
}

/** The most requests of one client that passed within any window. */
function mostInWindow(requests, passed) {
  const times = new Map();
  let most = 0;
  requests.forEach(({ atMs, key }, i) => {
    if (!passed[i]) return;
    const own = times.get(key) ?? [];
    times.set(key, own);
    own.push(atMs);
    while (own[0] <= atMs - windowMs) own.shift();
    most = Math.max(most, own.length);
  });
  return most;
}
