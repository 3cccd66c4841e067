import { parseArgs } from "node:util";
import { cases } from "./apps.js";
import { countCalls, total } from "./count.js";

const help = `Usage: npm run calls -- [options]

Counts the functions and modules of Floodgate that one warm request runs.

Options:
  --only <text>  cases whose name contains this
  --list         the functions too, module by module
  --help         this text`;

// The reader may have closed the pipe: `| head`.
process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => process.exit(code === "EPIPE" ? 0 : 1));

try {
  const { values } = parseArgs({
    options: {
      only: { type: "string", default: "" },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) console.log(help);
  else {
    for (const [name, one] of cases) {
      if (!name.includes(values.only)) continue;
      const calls = await countCalls(one);
      console.log(`${name.padEnd(42)} ${String(total(calls)).padStart(4)} calls in ${String(calls.size).padStart(2)} modules`);
      if (!values.list) continue;
      for (const [module, ofModule] of calls) {
        console.log(`  ${module}: ${[...ofModule].map(([called, count]) => (count === 1 ? called : `${called} x ${count}`)).join(", ")}`);
      }
    }
  }
} catch (error) {
  console.error(`${(error as Error).message}\n\n${help}`);
  process.exitCode = 2;
}
