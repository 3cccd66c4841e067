import { askOnce, Child, withChildren } from "./lib/child.mjs";
import { median, progress, spread, table } from "./lib/report.mjs";
import { floor, subjects } from "./lib/subjects.mjs";

/**
 * A process a subject, so that what V8 learns of one does not slow the others; several of them one after the other, since
 * where its memory happens to lie makes one process faster than the next. CPU time, so that other programs disturb less.
 */
const cases = {
  hot: "one hot key, allowed",
  denied: "one hot key, denied",
  keys: "100,000 keys in random order, allowed",
};

/** A young generation that holds the garbage of all measured decisions. */
const garbageFlags = ["--expose-gc", "--min-semi-space-size=64", "--max-semi-space-size=64"];

export async function store({ rounds, processes, only }) {
  const names = Object.keys(subjects).filter((name) => name.startsWith(floor) || only === undefined || name.includes(only));
  const results = Object.fromEntries(names.map((name) => [name, { hot: [], denied: [], keys: [] }]));
  for (let generation = 1; generation <= processes; generation++) {
    for (const [kase, label] of Object.entries(cases)) {
      progress(`store: ${label}: processes ${generation} of ${processes}, warming up`);
      await withChildren(
        names.map((name) => new Child("store-child.mjs", [name, kase])),
        async (children) => {
          for (const child of children) await child.ask("warm up");
          for (let round = 1; round <= rounds; round++) {
            progress(`store: ${label}: processes ${generation} of ${processes}, round ${round} of ${rounds}`);
            for (const [i, name] of names.entries()) results[name][kase].push(await children[i].ask("round"));
          }
        },
      );
    }
  }
  const garbage = {};
  for (const name of names) {
    progress(`store: garbage of ${name}`);
    garbage[name] = await askOnce("store-child.mjs", [name, "hot"], "garbage", garbageFlags);
  }
  progress("");
  const ratio = (name, kase) => median(results[name][kase].map((ns, round) => ns / results[floor][kase][round]));
  const rows = names.map((name) => [
    name,
    ...Object.keys(cases).flatMap((kase) => [median(results[name][kase]).toFixed(0), ratio(name, kase).toFixed(2)]),
    garbage[name].toFixed(0),
  ]);
  const noise = Math.max(...names.flatMap((name) => Object.keys(cases).map((kase) => spread(results[name][kase]))));
  return table(
    `One decision in process, with the packed packages: ns of CPU time, and x = ratio to the ${floor} in the same round (medians of ${rounds} rounds in each of ${processes} processes; the noisiest subject ±${(100 * noise).toFixed(0)} %)`,
    ["subject", "hot ns", "x", "denied ns", "x", "100k keys ns", "x", "garbage B"],
    rows,
  );
}
