import { parseArgs } from "node:util";
import { accuracy } from "./accuracy.mjs";
import { cpu } from "./cpu.mjs";
import { decision } from "./decision.mjs";
import { flood } from "./flood.mjs";
import { full } from "./full.mjs";
import { gateway } from "./gateway.mjs";
import { frameworks, http } from "./http.mjs";
import { pack } from "./lib/packed.mjs";
import { environment } from "./lib/report.mjs";
import { memory } from "./memory.mjs";
import { observability } from "./observability.mjs";
import { redis } from "./redis.mjs";
import { redisLeases } from "./redis-leases.mjs";
import { redisScript } from "./redis-script.mjs";
import { release } from "./release.mjs";
import { rules } from "./rules.mjs";
import { simulate } from "./simulate.mjs";
import { store } from "./store.mjs";

const help = `Usage: npm run bench -- [part...] [options]

Parts (all of them but release by default):
  store          one decision in process, against a bare Map and other libraries: CPU time, and garbage
  memory         bytes a key
  flood          fresh keys without end: pauses, speed, and whether a blocked key stays blocked
  cpu            CPU time of a request that is injected in process, of the same frameworks and subjects, on IPv4 and IPv6
  full           a fresh key on a full store, at limits 1, 2, 3 and 100 and up to 8 million keys (needs 3 GB)
  http           requests per second of Express 5, Koa 3 and Hono 4 on Node, with a no-op, with ours and with the peer of each
  gateway        the reverse proxy beside httpxy and nginx, the decision server and Envoy's rate limit service beside no-op servers
  decision       the dearest requests: a decision by length of path, key and headers, and by number of rules. Fails above a bound
  rules          one request under three of 10, 100 and 1000 rules
  observability  a request and a decision with a listener, Prometheus, OpenTelemetry and the dashboard; and the memory of a million keys
  redis          one decision in Redis, on a redis-server of its own, against INCR, a minimal EVALSHA and other libraries
  redis-script   the server's time of one decision alone, of each algorithm, against a script of TIME, GET and SET
  leases         one hot key in Redis with leases against INCR, and fifty stores in four processes on one key
  accuracy       how many requests a sliding window counter decides otherwise than the exact log
  simulate       lines a second of floodgate simulate, beside awk and goaccess, and peak memory
  release        CPU time of decisions and requests, beside those of the release before (the newest tag), or of --base

Options:
  --rounds <n>       rounds of store, rules and release (default 7, in each process), cpu and observability (default 2), http, gateway and redis (default 5), redis-script (default 40)
  --processes <n>    processes of store, rules and release, one after the other, a subject (default 3)
  --seconds <s>      how long a round lasts, of http (default 2), gateway (default 4) and of redis (default 1, for each subject)
  --connections <n>  connections of http and gateway (default 32)
  --host <address>   what http listens on (default 127.0.0.1; Node's own default is ::)
  --framework <name> express, koa or hono alone, of cpu and http; may stand several times
  --in-flight <list> how many decisions of redis wait at the same time (default 1,64,512)
  --beside <folder>  an earlier checkout, built, of redis: its decisions are measured in the same rounds
  --log <file>       an access log (combined format) of accuracy
  --lines <n>        lines of the log of simulate (default 1,000,000)
  --only <text>      subjects of store, redis and release whose name contains this
  --base <commit>    what release compares with. Default: the newest tag
  --help             this text

Ratios hold from machine to machine, absolute times do not. Run it on a machine that does nothing else.`;

/** These run on the packages as users install them. */
const inProcess = ["store", "memory", "flood"];
const parts = {
  store,
  memory,
  flood,
  full,
  cpu,
  http,
  gateway,
  decision,
  rules,
  observability,
  redis,
  "redis-script": redisScript,
  leases: redisLeases,
  accuracy,
  simulate,
  release,
};

function options() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        rounds: { type: "string" },
        processes: { type: "string", default: "3" },
        seconds: { type: "string" },
        connections: { type: "string", default: "32" },
        host: { type: "string", default: "127.0.0.1" },
        framework: { type: "string", multiple: true },
        "in-flight": { type: "string", default: "1,64,512" },
        lines: { type: "string", default: "1000000" },
        log: { type: "string" },
        beside: { type: "string" },
        only: { type: "string" },
        base: { type: "string" },
        help: { type: "boolean", default: false },
      },
    });
    for (const part of positionals) if (!Object.hasOwn(parts, part)) throw new Error(`No part is called "${part}".`);
    for (const name of values.framework ?? []) if (!Object.hasOwn(frameworks, name)) throw new Error(`No framework is called "${name}".`);
    for (const name of ["rounds", "processes", "seconds", "connections", "lines"]) {
      if (values[name] !== undefined && !(Number(values[name]) > 0))
        throw new Error(`--${name} takes a number above 0, not "${values[name]}".`);
    }
    const inFlight = values["in-flight"].split(",").map(Number);
    if (!inFlight.every((level) => Number.isSafeInteger(level) && level > 0))
      throw new Error(`--in-flight takes whole numbers above 0 with commas between them, not "${values["in-flight"]}".`);
    return { ...values, inFlight, chosen: positionals.length > 0 ? positionals : Object.keys(parts).filter((part) => part !== "release") };
  } catch (error) {
    console.error(`${error.message}\n\n${help}`);
    process.exit(2);
  }
}

const {
  chosen,
  rounds,
  processes,
  seconds,
  connections,
  host,
  framework,
  inFlight,
  lines,
  log,
  beside,
  only,
  base,
  help: wanted,
} = options();
if (wanted) {
  console.log(help);
} else {
  console.log(`${environment()}\n`);
  const given = {
    store: { rounds: Number(rounds ?? 7), processes: Number(processes), only },
    rules: { rounds: Number(rounds ?? 7), processes: Number(processes) },
    memory: { keys: 1_000_000 },
    flood: { keys: 2_000_000 },
    full: { keys: 200_000 },
    cpu: { rounds: Number(rounds ?? 2), slices: 20, addresses: ["127.0.0.1", "::1"], framework },
    observability: { rounds: Number(rounds ?? 2), slices: 20, keys: 1_000_000 },
    http: { rounds: Number(rounds ?? 5), seconds: Number(seconds ?? 2), connections: Number(connections), host, framework },
    gateway: { rounds: Number(rounds ?? 5), seconds: Number(seconds ?? 4), connections: Number(connections) },
    redis: { rounds: Number(rounds ?? 5), seconds: Number(seconds ?? 1), inFlight, only, beside },
    "redis-script": { rounds: Number(rounds ?? 40) },
    leases: { rounds: Number(rounds ?? 5), seconds: Number(seconds ?? 1) },
    accuracy: { log },
    simulate: { lines: Number(lines) },
    release: { base, rounds: Number(rounds ?? 7), processes: Number(processes), only },
  };
  try {
    if (chosen.some((part) => inProcess.includes(part))) pack();
    for (const part of chosen) console.log(await parts[part](given[part]));
  } catch (error) {
    console.error(`\n${error.message}`);
    process.exitCode = 1;
  }
}
