import { Child } from "./lib/child.mjs";
import { halfQuartileRange, median, progress, table } from "./lib/report.mjs";

const subjects = {
  nobody: "nobody listens",
  observe: "observe, a function that does nothing",
  prometheus: "@floodgate/metrics/prometheus",
  opentelemetry: "@floodgate/metrics/opentelemetry",
};
const names = Object.keys(subjects);

const sliceDecisions = 100_000;
const cases = {
  allowed: "an allowed decision",
  denied: "a denied decision",
};

/** CPU time that listeners and metrics add to a decision in memory. Each subject has its own process; the processes take turns in slices. */
export async function observe({ rounds, slices }) {
  const results = Object.fromEntries(Object.keys(cases).map((kase) => [kase, Object.fromEntries(names.map((name) => [name, []]))]));
  for (let round = 1; round <= rounds; round++) {
    for (const [kase, label] of Object.entries(cases)) {
      progress(`observe: ${label}: round ${round} of ${rounds}`);
      const children = names.map((name) => new Child("observe-child.mjs", [name]));
      try {
        for (const child of children) await child.ask({ kase, times: 6 * sliceDecisions });
        for (let slice = 0; slice < slices; slice++) {
          for (const [i, name] of names.entries()) results[kase][name].push(await children[i].ask({ kase, times: sliceDecisions }));
        }
      } finally {
        await Promise.all(children.map((child) => child.stop()));
      }
    }
  }
  progress("");
  const heading = `${rounds} rounds of ${slices} slices of ${sliceDecisions}`;
  return Object.entries(cases)
    .map(([kase, label]) => tableOf(`${label}: ${heading}`, results[kase]))
    .join("\n");
}

function tableOf(heading, results) {
  const rows = names.map((name) => {
    const added = results[name].map((ns, slice) => ns - results.nobody[slice]);
    const over = name === "nobody" ? ["", ""] : [median(added).toFixed(0), halfQuartileRange(added).toFixed(0)];
    return [subjects[name], median(results[name]).toFixed(0), ...over];
  });
  return table(`CPU time of ${heading}; medians, differences between neighbouring slices`, ["who listens", "ns", "over nobody", "±"], rows);
}
