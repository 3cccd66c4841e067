import { askOnce, inTurn } from "./lib/child.mjs";
import { steadyAllocation } from "./lib/inject.mjs";
import { halfQuartileRange, median, progress, table } from "./lib/report.mjs";

/** What a process with a limit has in addition. */
const labels = {
  nothing: "nothing",
  again: "nothing, in another process: the noise",
  observe: "`observe` with an empty listener",
  log: "the decision log, with 1 % of what passes",
  prometheus: "Prometheus",
  opentelemetry: "OpenTelemetry, with an SDK",
  dashboard: "the dashboard, mounted",
  "dashboard open": "the dashboard, open in a browser",
};
const kinds = Object.keys(labels);
const slices = 20;
const sliceRequests = 1_000;
const sliceDecisions = 100_000;

/** What it costs to look: CPU time of an injected request, its requests per second, and CPU time of a bare decision. */
export async function observability({ rounds = 2 }) {
  const children = Object.fromEntries(kinds.map((kind) => [kind, ["observability-child.mjs", [kind], steadyAllocation]]));
  const measured = (what, warmUp, count) => {
    const ask = (child, isWarmUp) => child.ask({ what, count: isWarmUp ? warmUp : count });
    return inTurn(`observability: ${what}`, children, { processes: rounds, rounds: slices, ask });
  };
  const requests = await measured("requests", 6_000, sliceRequests);
  const decisions = await measured("decisions", 500_000, sliceDecisions);
  const memory = await memoryOf();
  const heading = `${rounds} rounds of ${slices} slices of`;
  return [
    table(
      `Express 5 with a limiter, ${heading} ${sliceRequests} requests injected in process: medians, ratios between neighbouring slices`,
      ["and in addition", "requests/s", "CPU µs a request", "ratio", "±"],
      rows(requests, (ns) => [(1e9 / ns.wall).toFixed(0), (ns.cpu / 1000).toFixed(1)]),
    ),
    table(
      `limiter.consume in memory, 1000 keys, ${heading} ${sliceDecisions} decisions: medians, ratios between neighbouring slices`,
      ["and in addition", "CPU ns a decision", "ratio", "±"],
      rows(decisions, (ns) => [ns.cpu.toFixed(0)]),
    ),
    memory,
  ].join("\n");
}

function rows(results, times) {
  return kinds.map((kind) => {
    const cpu = results[kind].map(({ cpuNs }) => cpuNs);
    const wall = results[kind].map(({ wallNs }) => wallNs);
    const ratios = cpu.map((ns, slice) => ns / results.nothing[slice].cpuNs);
    const compared = kind === "nothing" ? ["", ""] : [median(ratios).toFixed(3), halfQuartileRange(ratios).toFixed(3)];
    return [labels[kind], ...times({ cpu: median(cpu), wall: median(wall) }), ...compared];
  });
}

/** What a process holds after a million keys have been limited once. */
async function memoryOf() {
  const keys = 1_000_000;
  const found = [];
  for (const kind of ["nothing", "prometheus", "dashboard"]) {
    progress(`observability: ${keys.toLocaleString("en")} keys with ${labels[kind]}`);
    const { heap, outside } = await askOnce("observability-child.mjs", [kind], { what: "memory", count: keys }, ["--expose-gc"]);
    found.push([labels[kind], ...[heap + outside, heap, outside].map((bytes) => (bytes / 1e6).toFixed(1))]);
  }
  return table(
    `Megabytes after ${keys.toLocaleString("en")} distinct keys, on a store of 100,000 keys`,
    ["and in addition", "MB", "on the heap", "in arrays"],
    found,
  );
}
