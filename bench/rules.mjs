import { Child, withChildren } from "./lib/child.mjs";
import { median, progress, spread, table } from "./lib/report.mjs";

const counts = [1, 10, 100, 1000];
const measure = 10;

/** A decision under the rules that match, among more and more that do not: a process for each, their rounds taking turns. */
export async function rules({ rounds, processes }) {
  const results = Object.fromEntries(counts.map((count) => [count, []]));
  for (let generation = 1; generation <= processes; generation++) {
    progress(`rules: processes ${generation} of ${processes}, warming up`);
    await withChildren(
      counts.map((count) => new Child("rules-child.mjs", [String(count)])),
      async (children) => {
        for (const child of children) await child.ask("warm up");
        for (let round = 1; round <= rounds; round++) {
          progress(`rules: processes ${generation} of ${processes}, round ${round} of ${rounds}`);
          for (const [i, count] of counts.entries()) results[count].push(await children[i].ask("round"));
        }
      },
    );
  }
  progress("");
  const ratio = (count) => median(results[count].map((ns, round) => ns / results[measure][round]));
  const noise = Math.max(...counts.map((count) => spread(results[count])));
  return table(
    `One request under some of many rules, in memory: ns, and x = ratio to ${measure} rules in the same round (medians of ${rounds} rounds in each of ${processes} processes; the noisiest ±${(100 * noise).toFixed(0)} %)`,
    ["rules", "of which match", "ns", "x"],
    counts.map((count) => [count, Math.min(count, 3), median(results[count]).toFixed(0), ratio(count).toFixed(2)]),
  );
}
