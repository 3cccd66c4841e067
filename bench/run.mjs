import { parseArgs } from "node:util";
import { accuracy } from "./accuracy.mjs";
import { adapterTable } from "./adapters.mjs";
import { cpu } from "./cpu.mjs";
import { databases } from "./databases.mjs";
import { decision } from "./decision.mjs";
import { gateway } from "./gateway.mjs";
import { frameworks, http } from "./http.mjs";
import { flood, full, memory } from "./keys.mjs";
import { environment, progress } from "./lib/report.mjs";
import { observability } from "./observability.mjs";
import { redis } from "./redis.mjs";
import { redisLeases } from "./redis-leases.mjs";
import { redisScript } from "./redis-script.mjs";
import { release } from "./release.mjs";
import { rules } from "./rules.mjs";
import { scale } from "./scale.mjs";
import { slots } from "./slots.mjs";
import { store } from "./store.mjs";

/** What each part measures, and the function that does, with the options. */
const parts = {
  store: ["one decision in process, against a bare Map and other libraries: CPU time, and garbage", store],
  memory: ["bytes a key", memory],
  flood: ["fresh keys without end: pauses, speed, and whether a blocked key stays blocked", flood],
  full: ["a fresh key on a full store, at limits 1, 2, 3 and 100 and up to 8 million keys (needs 3 GB)", full],
  cpu: ["CPU time of a request that is injected in process, of the same frameworks and subjects, on IPv4 and IPv6", cpu],
  adapters: ["each adapter: lines of source, size in a bundle, dependencies, first load", adapterTable],
  http: [
    "requests per second of Express 5, Koa 3, Hono 4, node:http and fetch on Node, with a no-op, with ours and with the peer of each",
    http,
  ],
  gateway: ["the reverse proxy beside httpxy and nginx, the decision server and Envoy's rate limit service beside no-op servers", gateway],
  decision: ["the dearest requests: a decision by length of path, key and headers, and by number of rules. Fails above a bound", decision],
  rules: ["one request under three of 10, 100 and 1000 rules", rules],
  observability: [
    "a request and a decision with a listener, Prometheus, OpenTelemetry and the dashboard; and the memory of a million keys",
    observability,
  ],
  redis: ["one decision in Redis, on a redis-server of its own, against INCR, a minimal EVALSHA and other libraries", redis],
  databases: [
    "one decision in Postgres, MariaDB and the primary of a cluster, against SELECT 1 or a message, and other libraries",
    databases,
  ],
  "redis-script": ["the server's time of one decision alone, of each algorithm, against a script of TIME, GET and SET", redisScript],
  leases: ["one hot key in Redis with leases against INCR, and fifty stores in four processes on one key", redisLeases],
  scale: [
    "how far it goes: 1, 3 and 6 servers by their CPU time, and one hot key of a thousand processes on a virtual clock (15 minutes)",
    scale,
  ],
  slots: ["two processes with a limit of work in flight, beside bottleneck and p-limit: the most at once, and after a SIGKILL", slots],
  accuracy: ["how many requests a sliding window counter decides otherwise than the exact log", accuracy],
  release: ["CPU time of decisions and requests, beside those of the release before (the newest tag), or of --base", release],
};

const help = `Usage: npm run bench -- [part...] [options]

Parts (all of them but release by default):
${Object.entries(parts)
  .map(([name, [what]]) => `  ${name.padEnd(15)}${what}`)
  .join("\n")}

Options:
  --rounds <n>       rounds of store, rules and release (default 7, in each process), cpu and observability (default 2), adapters (default 15), http, gateway and redis (default 5), redis-script (default 40)
  --processes <n>    processes of store, rules and release, one after the other, a subject (default 3)
  --seconds <s>      how long a round lasts, of http (default 2), gateway (default 4) and of redis (default 1, for each subject)
  --connections <n>  connections of http and gateway (default 32)
  --framework <name> express, koa, fastify, nestjs, hono, node or fetch alone, of cpu and http; may stand several times
  --in-flight <list> how many decisions of redis wait at the same time (default 1,64,512)
  --log <file>       an access log (combined format) of accuracy
  --only <text>      subjects of store, redis and release whose name contains this
  --base <commit>    what release compares with. Default: the newest tag
  --help             this text

Ratios hold from machine to machine, absolute times do not. Run it on a machine that does nothing else.`;

const text = { type: "string" };

function options() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        rounds: text,
        processes: { ...text, default: "3" },
        seconds: text,
        connections: { ...text, default: "32" },
        framework: { ...text, multiple: true },
        "in-flight": { ...text, default: "1,64,512" },
        log: text,
        only: text,
        base: text,
        help: { type: "boolean", default: false },
      },
    });
    for (const part of positionals) if (!Object.hasOwn(parts, part)) throw new Error(`No part is called "${part}".`);
    for (const name of values.framework ?? []) if (!Object.hasOwn(frameworks, name)) throw new Error(`No framework is called "${name}".`);
    const numbers = {};
    for (const name of ["rounds", "processes", "seconds", "connections"]) {
      if (values[name] === undefined) continue;
      numbers[name] = Number(values[name]);
      if (!(numbers[name] > 0)) throw new Error(`--${name} takes a number above 0, not "${values[name]}".`);
    }
    const inFlight = values["in-flight"].split(",").map(Number);
    if (!inFlight.every((level) => Number.isSafeInteger(level) && level > 0))
      throw new Error(`--in-flight takes whole numbers above 0 with commas between them, not "${values["in-flight"]}".`);
    const chosen = positionals.length > 0 ? positionals : Object.keys(parts).filter((part) => part !== "release");
    return { ...values, ...numbers, inFlight, chosen };
  } catch (error) {
    console.error(`${error.message}\n\n${help}`);
    process.exit(2);
  }
}

const given = options();
if (given.help) {
  console.log(help);
} else {
  console.log(`${environment()}\n`);
  try {
    for (const part of given.chosen) {
      const [, run] = parts[part];
      const text = await run(given);
      progress("");
      console.log(text);
    }
  } catch (error) {
    console.error(`\n${error.message}`);
    process.exitCode = 1;
  }
}
