// Starts several processes of the app on one Redis, sends them requests in turn until all respond with 429, and stops everything.
import { fork } from "node:child_process";
import { once } from "node:events";
import { findRedis } from "./find-redis.mjs";

const processes = 3;
const requests = 15;

if (process.argv.includes("--help")) {
  console.log(
    "Usage: node demo.mjs\n\nUses the Redis at REDIS_URL. Without it: in Floodgate's repository a redis-server of its own, elsewhere redis://127.0.0.1:6379.",
  );
  process.exit(0);
}

// Stop everything when this process ends.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

const { url, isOwn, stop } = await findRedis();
console.log(`Redis at ${new URL(url).host}${isOwn ? ", started for this" : ""}`);

const workers = await Promise.all(Array.from({ length: processes }, start)).catch(({ message }) => {
  console.error(message);
  process.exit(1);
});
for (const { pid, port } of workers) console.log(`Process ${pid} serves on http://127.0.0.1:${port}`);
console.log(`\nTogether they let each client pass 10 times a minute. Sending ${requests} requests, to each in turn:\n`);

let allowed = 0;
for (let i = 0; i < requests; i++) {
  const { pid, port } = workers[i % processes];
  const response = await fetch(`http://127.0.0.1:${port}`);
  await response.arrayBuffer();
  if (response.ok) allowed++;
  console.log(`${String(i + 1).padStart(2)}. process ${pid}  ${response.status} ${response.statusText}`);
  for (const name of ["RateLimit-Policy", "RateLimit", "Retry-After"]) {
    const value = response.headers.get(name);
    if (value !== null) console.log(`    ${name}: ${value}`);
  }
}
console.log(`\n${allowed} of ${requests} requests passed, whichever process they met. The app is examples/redis/worker.mjs.`);

for (const { worker } of workers) worker.disconnect();
await stop();

/** Starts a process of the app, and waits until it listens. Each run has its own prefix, so that an existing Redis starts at zero. */
async function start() {
  const worker = fork(new URL("worker.mjs", import.meta.url), [url, `floodgate-demo-${process.pid}`]);
  const ended = once(worker, "exit").then(() => {
    throw new Error("A process of the app has ended before it could serve.");
  });
  const [{ port }] = await Promise.race([once(worker, "message"), ended]);
  return { worker, pid: worker.pid, port };
}
