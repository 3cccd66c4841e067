import { askOnce } from "./lib/child.mjs";
import { progress, table } from "./lib/report.mjs";

const shown = (number) => number.toLocaleString("en");

/** Bytes a key. */
export async function memory() {
  const keys = 1_000_000;
  const rows = [];
  for (const name of ["bare Map", "slidingWindowCounter", "fixedWindow", "tokenBucket", "express-rate-limit", "rate-limiter-flexible"]) {
    progress(`memory: ${shown(keys)} keys in ${name}`);
    const { heap, outside } = await askOnce("keys-child.mjs", ["memory", name, keys], "fill", ["--expose-gc"]);
    rows.push([name, ...[heap + outside, heap, outside].map((bytes) => (bytes / keys).toFixed(0))]);
  }
  return table(`Bytes a key at ${shown(keys)} keys, key strings included`, ["subject", "bytes", "on the heap", "in arrays"], rows);
}

const floods = [
  ["bare Map", ""],
  ["slidingWindowCounter", 100_000],
  ["slidingWindowCounter", 1_000_000],
  ["fixedWindow", 100_000],
  ["express-rate-limit", ""],
  ["rate-limiter-flexible", ""],
];

/** Fresh keys without end. */
export async function flood() {
  const keys = 2_000_000;
  const rows = [];
  for (const [name, maxKeys] of floods) {
    progress(`flood: ${shown(keys)} fresh keys through ${name} ${maxKeys}`);
    // Timing each call finds the stalls. The speed is measured without that, in another process.
    const stalls = await askOnce("keys-child.mjs", ["stalls", name, keys, maxKeys], "flood");
    const ns = await askOnce("keys-child.mjs", ["speed", name, keys, maxKeys], "flood");
    const { longestCallMs, longestGapMs, size, stillBlocked } = stalls;
    rows.push([
      name,
      maxKeys === "" ? "none" : shown(maxKeys),
      ns.toFixed(0),
      longestCallMs.toFixed(1),
      longestGapMs.toFixed(1),
      size === undefined ? "" : `${shown(size)}${size <= maxKeys ? "" : " TOO MANY"}`,
      stillBlocked ? "yes" : "NO",
    ]);
  }
  return table(
    `A flood of ${shown(keys)} fresh keys: ns a key, the longest call and the longest gap between calls (making the key included), in ms`,
    ["subject", "maxKeys", "ns", "longest call", "longest gap", "keys after", "still blocked"],
    rows,
  );
}

/** 0: a bare Map that deletes its oldest key. */
const limits = [0, 1, 2, 3, 100];
const subjectOf = (limit) => (limit === 0 ? "bare Map" : `limit ${limit}`);

/** A fresh key on a full store. */
export async function full() {
  const keys = 200_000;
  const rows = [];
  for (const maxKeys of [100, 10_000, 100_000, 1_000_000, 8_000_000]) {
    const row = [shown(maxKeys)];
    let longest = 0;
    for (const limit of limits) {
      progress(`full: ${shown(keys)} fresh keys, ${subjectOf(limit)}, on ${shown(maxKeys)} keys`);
      const { ns, longestMs } = await askOnce("keys-child.mjs", ["full", limit, maxKeys, keys], "flood", ["--max-old-space-size=4096"]);
      row.push(ns.toFixed(0));
      if (limit > 0) longest = Math.max(longest, longestMs);
    }
    rows.push([...row, longest.toFixed(1)]);
  }
  return table(
    `CPU ns a fresh key on a full store, by limit, and the longest 100 keys of all in ms (${shown(keys)} keys each)`,
    ["maxKeys", ...limits.map(subjectOf), "longest"],
    rows,
  );
}
