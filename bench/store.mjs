import { askOnce, inTurn } from "./lib/child.mjs";
import { median, medianRatio, progress, spread, table } from "./lib/report.mjs";
import { floor, subjects } from "./lib/subjects.mjs";

const cases = {
  hot: "one hot key, allowed",
  denied: "one hot key, denied",
  keys: "100,000 keys in random order, allowed",
};

/** A young generation that holds the garbage of all measured decisions. */
const garbageFlags = ["--expose-gc", "--min-semi-space-size=64", "--max-semi-space-size=64"];

/** CPU time, so that other programs disturb less. */
export async function store({ rounds = 7, processes, only }) {
  const names = Object.keys(subjects).filter((name) => name.startsWith(floor) || only === undefined || name.includes(only));
  const results = {};
  for (const [kase, label] of Object.entries(cases)) {
    const children = Object.fromEntries(names.map((name) => [name, ["store-child.mjs", [name, kase]]]));
    results[kase] = await inTurn(`store: ${label}`, children, { processes, rounds });
  }
  const rows = [];
  for (const name of names) {
    progress(`store: garbage of ${name}`);
    const garbage = await askOnce("store-child.mjs", [name, "hot"], "garbage", garbageFlags);
    const times = Object.values(results).map((ns) => [median(ns[name]).toFixed(0), medianRatio(ns[name], ns[floor]).toFixed(2)]);
    rows.push([name, ...times.flat(), garbage.toFixed(0)]);
  }
  const noise = Math.max(...Object.values(results).flatMap((ns) => Object.values(ns).map(spread)));
  return table(
    `One decision in process: ns of CPU time, and x = ratio to the ${floor} in the same round (medians of ${rounds} rounds in each of ${processes} processes; the noisiest subject ±${(100 * noise).toFixed(0)} %)`,
    ["subject", "hot ns", "x", "denied ns", "x", "100k keys ns", "x", "garbage B"],
    rows,
  );
}
