import { Child } from "./lib/child.mjs";
import { progress, table } from "./lib/report.mjs";

const names = ["bare Map", "slidingWindowCounter", "fixedWindow", "tokenBucket", "express-rate-limit", "rate-limiter-flexible"];

export async function memory({ keys }) {
  const rows = [];
  for (const name of names) {
    progress(`memory: ${keys.toLocaleString("en")} keys in ${name}`);
    const child = new Child("memory-child.mjs", [name, String(keys)], ["--expose-gc"]);
    try {
      const { heap, outside } = await child.ask("fill");
      rows.push([name, ...[heap + outside, heap, outside].map((bytes) => (bytes / keys).toFixed(0))]);
    } finally {
      await child.stop();
    }
  }
  progress("");
  return table(
    `Bytes a key at ${keys.toLocaleString("en")} keys, key strings included`,
    ["subject", "bytes", "on the heap", "in arrays"],
    rows,
  );
}
