import { askOnce } from "./lib/child.mjs";
import { progress, table } from "./lib/report.mjs";

const limits = [1, 2, 3, 100];
const sizes = [100, 10_000, 100_000, 1_000_000, 8_000_000];

export async function full({ keys }) {
  const rows = [];
  for (const maxKeys of sizes) {
    const row = [maxKeys.toLocaleString("en")];
    let longest = 0;
    for (const limit of limits) {
      progress(`full: ${keys.toLocaleString("en")} fresh keys at limit ${limit} on ${maxKeys.toLocaleString("en")} keys`);
      const args = [limit, maxKeys, keys].map(String);
      const { ns, longestMs } = await askOnce("full-child.mjs", args, "flood", ["--max-old-space-size=4096"]);
      row.push(ns.toFixed(0));
      longest = Math.max(longest, longestMs);
    }
    rows.push([...row, longest.toFixed(1)]);
  }
  progress("");
  return table(
    `CPU ns a fresh key on a full store, by limit, and the longest 100 keys of all in ms (${keys.toLocaleString("en")} keys each)`,
    ["maxKeys", ...limits.map((limit) => `limit ${limit}`), "longest"],
    rows,
  );
}
