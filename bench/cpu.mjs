import { frameworks } from "./http.mjs";
import { Child, withChildren } from "./lib/child.mjs";
import { halfQuartileRange, median, progress, table } from "./lib/report.mjs";

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

const kinds = Object.keys(subjects);
const warmUpRequests = 6_000;
const sliceRequests = 1_000;

/**
 * CPU time of a request that is injected into the framework in process: without sockets, the network of a busy machine adds no noise.
 * Each subject has its own process; the processes take turns in slices.
 */
export async function cpu({ rounds, slices, addresses, framework }) {
  const chosen = framework ?? Object.keys(frameworks);
  const tables = [];
  for (const name of chosen) {
    for (const address of addresses) {
      const results = Object.fromEntries(kinds.map((kind) => [kind, []]));
      for (let round = 1; round <= rounds; round++) {
        progress(`cpu: ${frameworks[name].label} from ${address}: round ${round} of ${rounds}`);
        await measure(name, address, slices, results);
      }
      tables.push(tableOf(name, address, results, `${rounds} rounds of ${slices} slices of ${sliceRequests} requests`));
    }
  }
  progress("");
  return tables.join("\n");
}

async function measure(framework, address, slices, results) {
  await withChildren(
    kinds.map((kind) => new Child("cpu-child.mjs", [framework, kind, address])),
    async (children) => {
      for (const child of children) await child.ask(warmUpRequests);
      for (let slice = 0; slice < slices; slice++) {
        for (const [i, kind] of kinds.entries()) results[kind].push(await children[i].ask(sliceRequests));
      }
    },
  );
}

function tableOf(name, address, results, heading) {
  const { label, peer } = frameworks[name];
  const added = (kind, base) => results[kind].map((us, slice) => us - results[base][slice]);
  const rows = kinds.map((kind) => {
    const { label: subject, base } = subjects[kind];
    const over = (other) => (other === undefined || other === kind ? "" : median(added(kind, other)).toFixed(1));
    return [
      kind.startsWith("peer") ? `${peer}, ${subject}` : subject,
      median(results[kind]).toFixed(1),
      over("nothing"),
      over(base),
      base === undefined ? "" : halfQuartileRange(added(kind, base)).toFixed(1),
    ];
  });
  return table(
    `${label}, requests from ${address}, injected in process, ${heading}: medians, differences between neighbouring slices`,
    ["in front of the route", "CPU µs a request", "over nothing", "over its no-op", "±"],
    rows,
  );
}
