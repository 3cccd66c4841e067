import { askOnce } from "./lib/child.mjs";
import { progress, table } from "./lib/report.mjs";

const runs = [
  ["bare Map", ""],
  ["slidingWindowCounter", "100000"],
  ["slidingWindowCounter", "1000000"],
  ["fixedWindow", "100000"],
  ["express-rate-limit", ""],
  ["rate-limiter-flexible", ""],
];

export async function flood({ keys }) {
  const rows = [];
  for (const [name, maxKeys] of runs) {
    progress(`flood: ${keys.toLocaleString("en")} fresh keys through ${name} ${maxKeys}`);
    const answers = {};
    // Timing each call finds the stalls. The speed is measured without that, in another process.
    for (const how of ["stalls", "speed"]) {
      answers[how] = await askOnce("flood-child.mjs", [name, maxKeys, String(keys), how], "flood");
    }
    const { longestCallMs, longestGapMs, size, stillBlocked } = answers.stalls;
    rows.push([
      name,
      maxKeys === "" ? "none" : Number(maxKeys).toLocaleString("en"),
      answers.speed.ns.toFixed(0),
      longestCallMs.toFixed(1),
      longestGapMs.toFixed(1),
      size === undefined ? "" : `${size.toLocaleString("en")}${size <= Number(maxKeys) ? "" : " TOO MANY"}`,
      stillBlocked ? "yes" : "NO",
    ]);
  }
  progress("");
  return table(
    `A flood of ${keys.toLocaleString("en")} fresh keys: ns a key, the longest call and the longest gap between calls (making the key included), in ms`,
    ["subject", "maxKeys", "ns", "longest call", "longest gap", "keys after", "still blocked"],
    rows,
  );
}
