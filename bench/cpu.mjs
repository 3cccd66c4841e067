import { frameworks } from "./http.mjs";
import { inTurn } from "./lib/child.mjs";
import { steadyAllocation } from "./lib/inject.mjs";
import { errorOfMedian, median, table } from "./lib/report.mjs";

/** Each subject, and its no-op without a limit. */
const subjects = {
  nothing: { label: "nothing", base: undefined },
  noop: { label: "no-op that sets two headers", base: undefined },
  allowed: { label: "floodgate, allowed", base: "noop" },
  "peer allowed": { label: "allowed", base: "noop" },
  "noop denied": { label: "no-op that answers 429 with the same body", base: undefined },
  denied: { label: "floodgate, denied", base: "noop denied" },
  "peer denied": { label: "denied", base: "noop denied" },
};

/** Some frameworks have no other library to compare with. */
const kindsOf = (framework) => Object.keys(subjects).filter((kind) => frameworks[framework].peer !== undefined || !kind.startsWith("peer"));
const addresses = ["127.0.0.1", "::1"];
const slices = 40;
const sliceRequests = 5_000;

/** CPU time of a request that is injected into the framework in process: without sockets, the network of a busy machine adds no noise. */
export async function cpu({ rounds = 2, framework }) {
  const tables = [];
  for (const name of framework ?? Object.keys(frameworks)) {
    for (const address of addresses) {
      const children = Object.fromEntries(kindsOf(name).map((kind) => [kind, ["cpu-child.mjs", [name, kind, address], steadyAllocation]]));
      const ask = (child, isWarmUp) => child.ask(isWarmUp ? 20_000 : sliceRequests);
      const results = await inTurn(`cpu: ${frameworks[name].label} from ${address}`, children, { processes: rounds, rounds: slices, ask });
      tables.push(tableOf(name, address, results, `${rounds} rounds of ${slices} slices of ${sliceRequests} requests`));
    }
  }
  return tables.join("\n");
}

function tableOf(name, address, results, heading) {
  const { label, peer } = frameworks[name];
  const added = (kind, base) => results[kind].map((us, slice) => us - results[base][slice]);
  const rows = kindsOf(name).map((kind) => {
    const { label: subject, base } = subjects[kind];
    const over = (other) => (other === undefined || other === kind ? "" : median(added(kind, other)).toFixed(1));
    return [
      kind.startsWith("peer") ? `${peer}, ${subject}` : subject,
      median(results[kind]).toFixed(1),
      over("nothing"),
      over(base),
      base === undefined ? "" : errorOfMedian(added(kind, base)).toFixed(2),
    ];
  });
  return table(
    `${label}, requests from ${address}, injected in process, ${heading}: medians, differences between neighbouring slices`,
    ["in front of the route", "CPU µs a request", "over nothing", "over its no-op", "± (standard error)"],
    rows,
  );
}
