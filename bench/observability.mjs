import { askOnce, Child, withChildren } from "./lib/child.mjs";
import { halfQuartileRange, median, progress, table } from "./lib/report.mjs";

/** What a process with a limit has in addition. */
const labels = {
  nothing: "nothing",
  again: "nothing, in another process: the noise",
  observe: "`observe` with an empty listener",
  prometheus: "Prometheus",
  opentelemetry: "OpenTelemetry, with an SDK",
  dashboard: "the dashboard, mounted",
  "dashboard open": "the dashboard, open in a browser",
};
const kinds = Object.keys(labels);
const warmUpRequests = 6_000;
const sliceRequests = 1_000;
const warmUpDecisions = 500_000;
const sliceDecisions = 100_000;

/**
 * What it costs to look: CPU time of an injected request, its requests per second, and CPU time of a bare decision. Each subject has its
 * own process; the processes take turns in slices.
 */
export async function observability({ rounds, slices, keys }) {
  const requests = await measured("requests", warmUpRequests, sliceRequests, { rounds, slices });
  const decisions = await measured("decisions", warmUpDecisions, sliceDecisions, { rounds, slices });
  const memory = await memoryOf(keys);
  progress("");
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

async function measured(what, warmUp, slice, { rounds, slices }) {
  const results = Object.fromEntries(kinds.map((kind) => [kind, { cpu: [], wall: [] }]));
  for (let round = 1; round <= rounds; round++) {
    progress(`observability: ${what}, round ${round} of ${rounds}`);
    await withChildren(
      kinds.map((kind) => new Child("observability-child.mjs", [kind])),
      async (children) => {
        for (const child of children) await child.ask({ what, count: warmUp });
        for (let i = 0; i < slices; i++) {
          for (const [k, kind] of kinds.entries()) {
            const { cpuNs, wallNs } = await children[k].ask({ what, count: slice });
            results[kind].cpu.push(cpuNs / slice);
            results[kind].wall.push(wallNs / slice);
          }
        }
      },
    );
  }
  return results;
}

function rows(results, times) {
  return kinds.map((kind) => {
    const { cpu, wall } = results[kind];
    const ratios = cpu.map((ns, slice) => ns / results.nothing.cpu[slice]);
    const compared = kind === "nothing" ? ["", ""] : [median(ratios).toFixed(3), halfQuartileRange(ratios).toFixed(3)];
    return [labels[kind], ...times({ cpu: median(cpu), wall: median(wall) }), ...compared];
  });
}

/** What a process holds after a million keys have been limited once. */
async function memoryOf(keys) {
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
