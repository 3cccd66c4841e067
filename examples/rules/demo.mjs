// Runs two processes of an app with rules in Redis, changes a limit while they run, and shows that both follow.
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { pushRules } from "@floodgate/rules";
import { Redis } from "ioredis";
import { findRedis } from "./find-redis.mjs";

const { values: options } = parseArgs({
  options: { help: { type: "boolean" }, stay: { type: "boolean" }, window: { type: "string", default: "1s" } },
});
if (options.help) {
  console.log(`Usage: node demo.mjs [--stay] [--window 1s]

Uses the Redis at REDIS_URL. Without it: in Floodgate's repository a redis-server of its own, elsewhere redis://127.0.0.1:6379.

  --stay               serve on until Ctrl-C, to change the rules by hand: floodgate push limits.yaml --redis <url> --rules-key <key>
  --window <duration>  how long a post counts; longer for a machine so slow that a second passes between two posts`);
  process.exit(0);
}

// Stop everything when this process ends.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

const { url, isOwn, stop } = await findRedis();

const redis = new Redis(url, { lazyConnect: true });
redis.on("error", (error) => console.error(`Redis: ${error.message}`));
await redis.connect().catch(() => {
  console.error("There must be a Redis: start one with redis-server, or say where one is with REDIS_URL.");
  process.exit(1);
});
const { host, port } = redis.options;
console.log(`Redis at ${host}:${port}${isOwn ? ", started for this" : ""}`);

// Each run has its own prefix, so that an existing Redis starts at zero.
const prefix = `floodgate-demo-${process.pid}`;
const rulesKey = `${prefix}:rules`;
const { window } = options;
const limits = (await readFile(new URL("limits.yaml", import.meta.url), "utf8")).replace("window: 1s", `window: ${window}`);
console.log(`limits.yaml is version ${await pushRules(redis, rulesKey, limits)} of the rules, under the key ${rulesKey}`);

const workers = await Promise.all([start(), start()]).catch(({ message }) => {
  console.error(message);
  process.exit(1);
});
for (const { pid, port, version } of workers) {
  console.log(`Process ${pid} serves on http://127.0.0.1:${port}, by version ${version}`);
}

console.log(`\nAnn may post once in ${window}, whichever process she meets:\n`);
await post("ann", 3);
console.log("\nBob pays, and may five times:\n");
await post("bob", 6, { "x-plan": "pro" });

console.log(`\nNow 3 posts in ${window} for everybody, pushed to Redis:\n`);
const startMs = performance.now();
const followed = workers.map((worker) => worker.next("version"));
const version = await pushRules(redis, rulesKey, limits.replace("limit: 1, window:", "limit: 3, window:"));
await Promise.all(
  followed.map(async (message, i) => {
    console.log(
      `   process ${workers[i].pid} follows version ${(await message).version} after ${(performance.now() - startMs).toFixed(0)} ms`,
    );
  }),
);
await post("cleo", 4);

console.log("\nA version with a mistake is refused where it is pushed, and changes nothing:\n");
await pushRules(redis, rulesKey, limits.replace("limit: 100, window: 1m", "limit: 100, windw: 1m"), { ifVersion: version }).catch(
  ({ message }) => console.log(message.replace(/^/gm, "   ")),
);

if (options.stay) {
  console.log(`\nServing until Ctrl-C. Change limits.yaml and push it:

  npx @floodgate/cli push limits.yaml --redis ${url} --rules-key ${rulesKey}
`);
  for (const { pid, worker } of workers) {
    worker.on("message", ({ version, refused }) => console.log(`Process ${pid} ${refused ?? `follows version ${version}`}`));
  }
} else {
  await redis.del(rulesKey);
  redis.disconnect();
  for (const { worker } of workers) worker.disconnect();
  await stop();
}

/** Sends `count` posts as a user, to each process in turn. */
async function post(user, times, headers = {}) {
  for (let i = 0; i < times; i++) {
    const { pid, port } = workers[i % workers.length];
    const response = await fetch(`http://127.0.0.1:${port}/posts`, {
      method: "POST",
      headers: { "x-user": user, "x-forwarded-for": "192.0.2.1", ...headers },
    });
    await response.arrayBuffer();
    const retryAfter = response.headers.get("retry-after");
    console.log(`   process ${pid}  ${response.status} ${response.statusText}${retryAfter === null ? "" : `, Retry-After: ${retryAfter}`}`);
  }
}

/** Starts a process of the app, and waits until it listens. */
async function start() {
  const worker = fork(new URL("worker.mjs", import.meta.url), [url, prefix]);
  /** The next message with this property. */
  const next = async (word) => {
    let message = {};
    while (!(word in message)) [message] = await once(worker, "message");
    return message;
  };
  const ended = once(worker, "exit").then(() => {
    throw new Error("A process of the app has ended before it could serve.");
  });
  const { port, version } = await Promise.race([next("port"), ended]);
  return { worker, next, pid: worker.pid, port, version };
}
