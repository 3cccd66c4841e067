import { inTurn } from "./lib/child.mjs";
import { median, medianRatio, spread, table } from "./lib/report.mjs";

const counts = [1, 10, 100, 1000];
const measure = 10;

/** A decision under the rules that match, among more and more that do not. */
export async function rules({ rounds = 7, processes }) {
  const children = Object.fromEntries(counts.map((count) => [count, ["rules-child.mjs", [count]]]));
  const results = await inTurn("rules", children, { processes, rounds });
  const noise = Math.max(...Object.values(results).map(spread));
  return table(
    `One request under some of many rules, in memory: ns, and x = ratio to ${measure} rules in the same round (medians of ${rounds} rounds in each of ${processes} processes; the noisiest ±${(100 * noise).toFixed(0)} %)`,
    ["rules", "of which match", "ns", "x"],
    counts.map((count) => {
      return [count, Math.min(count, 3), median(results[count]).toFixed(0), medianRatio(results[count], results[measure]).toFixed(2)];
    }),
  );
}
