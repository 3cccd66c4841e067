import { parseArgs } from "node:util";
import { flood } from "./flood.mjs";
import { http } from "./http.mjs";
import { environment } from "./lib/report.mjs";
import { memory } from "./memory.mjs";
import { store } from "./store.mjs";

const help = `Usage: npm run bench -- [part...] [options]

Parts (all of them by default):
  store    one decision in process, against a bare Map and other libraries
  memory   bytes a key
  flood    fresh keys without end: pauses, speed, and whether a blocked key stays blocked
  http     requests per second of Express 5

Options:
  --rounds <n>       rounds of store (default 7, in each process) and http (default 5)
  --processes <n>    processes of store, one after the other, a subject (default 3)
  --seconds <s>      how long a round of http lasts (default 2)
  --connections <n>  connections of http (default 32)
  --only <text>      subjects of store whose name contains this
  --help             this text

Ratios hold from machine to machine, absolute times do not. Run it on a machine that does nothing else.`;

const parts = { store, memory, flood, http };

function options() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        rounds: { type: "string" },
        processes: { type: "string", default: "3" },
        seconds: { type: "string", default: "2" },
        connections: { type: "string", default: "32" },
        only: { type: "string" },
        help: { type: "boolean", default: false },
      },
    });
    for (const part of positionals) if (!Object.hasOwn(parts, part)) throw new Error(`No part is called "${part}".`);
    for (const name of ["rounds", "processes", "seconds", "connections"]) {
      if (values[name] !== undefined && !(Number(values[name]) > 0))
        throw new Error(`--${name} takes a number above 0, not "${values[name]}".`);
    }
    return { ...values, chosen: positionals.length > 0 ? positionals : Object.keys(parts) };
  } catch (error) {
    console.error(`${error.message}\n\n${help}`);
    process.exit(2);
  }
}

const { chosen, rounds, processes, seconds, connections, only, help: wanted } = options();
if (wanted) {
  console.log(help);
} else {
  console.log(`${environment()}\n`);
  const given = {
    store: { rounds: Number(rounds ?? 7), processes: Number(processes), only },
    memory: { keys: 1_000_000 },
    flood: { keys: 2_000_000 },
    http: { rounds: Number(rounds ?? 5), seconds: Number(seconds), connections: Number(connections) },
  };
  try {
    for (const part of chosen) console.log(await parts[part](given[part]));
  } catch (error) {
    console.error(`\n${error.message}`);
    process.exitCode = 1;
  }
}
