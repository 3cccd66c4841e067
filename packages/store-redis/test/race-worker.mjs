// A worker of races.test.ts: receives a race, prepares, and on "go" sends its requests as fast as it can.
import { on } from "node:events";
import { consumeAll, createLimiter } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { Cluster, Redis } from "ioredis";

const messages = on(process, "message");
process.once("disconnect", () => process.exit());
process.send("started");

const clients = new Map();
for (;;) {
  const [race] = (await messages.next()).value;
  const store = redisStore(clientOf(race.ports), { denyCache: race.denyCache });
  const limiters = race.limits.map((limit) => createLimiter({ ...limit, store, timeoutMs: 60_000, onStoreError: "deny" }));
  // Loads the script on the server, and lets the store learn the server's clock.
  await limiters[0].peek("none");
  process.send("ready");
  await messages.next();
  process.send(await run(limiters, race));
}

/** Connects to one server, or to a Cluster if there are several ports. */
function clientOf(ports) {
  const known = clients.get(ports.join());
  if (known !== undefined) return known;
  const client = ports.length > 1 ? new Cluster(ports.map((port) => ({ host: "127.0.0.1", port }))) : new Redis(ports[0]);
  // The server is stopped after its races.
  client.on("error", () => undefined);
  clients.set(ports.join(), client);
  return client;
}

/** Returns the number of allowed requests. */
async function run(limiters, { key, requests, inFlight }) {
  const ask = () => (limiters.length === 1 ? limiters[0].consume(key) : consumeAll(limiters.map((limiter) => ({ limiter, key }))));
  let left = requests;
  let allowed = 0;
  const askInTurn = async () => {
    while (left-- > 0) if ((await ask()).allowed) allowed++;
  };
  await Promise.all(Array.from({ length: inFlight }, askInTurn));
  return allowed;
}
