import { askOnce } from "./lib/child.mjs";
import { progress, table } from "./lib/report.mjs";

const names = ["bare Map", "slidingWindowCounter", "fixedWindow", "tokenBucket", "express-rate-limit", "rate-limiter-flexible"];

export async function memory({ keys }) {
  const rows = [];
  for (const name of names) {
    progress(`memory: ${keys.toLocaleString("en")} keys in ${name}`);
    const { heap, outside } = await askOnce("memory-child.mjs", [name, String(keys)], "fill", ["--expose-gc"]);
    rows.push([name, ...[heap + outside, heap, outside].map((bytes) => (bytes / keys).toFixed(0))]);
  }
  progress("");
  return table(
    `Bytes a key at ${keys.toLocaleString("en")} keys, key strings included`,
    ["subject", "bytes", "on the heap", "in arrays"],
    rows,
  );
}
