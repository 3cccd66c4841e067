import { memoryStore } from "@floodgate/store-memory";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { fuzzDecisions } from "./decisions.js";
import { fuzzOptions } from "./options.js";
import { fuzzRequests } from "./requests.js";

/** What is tried, and what part of all it is. */
export const fuzzed: Readonly<Record<string, { readonly share: number; run(count: number): Promise<void> }>> = {
  "decisions in memory": { share: 0.6, run: fuzzMemory },
  "decisions in Redis": { share: 0.25, run: fuzzRedis },
  options: { share: 0.1, run: fuzzOptions },
  requests: { share: 0.05, run: fuzzRequests },
};

/** Hostile decisions in memory, on a store that may hold few keys: it must not hold more. */
function fuzzMemory(decisions: number): Promise<void> {
  const maxKeys = 5;
  return fuzzDecisions(
    decisions,
    (clock) => memoryStore({ clock, maxKeys }),
    ({ size }) => {
      if (size > maxKeys) throw new Error(`${size} keys where there may be ${maxKeys}`);
    },
  );
}

/** Hostile decisions in Redis: each key must be short and pass away. */
async function fuzzRedis(decisions: number): Promise<void> {
  const server = await startRedis();
  const redis = new Redis(server.port);
  let runs = 0;
  try {
    await fuzzDecisions(
      decisions,
      (clock) => redisStore(redis, { clock, prefix: `fuzz-${runs++}` }),
      () => checkKeys(server),
    );
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

/** In bytes: 200 characters, each of which is escaped by five, with a prefix, a name and a policy. */
const longestKey = 1100;

async function checkKeys(server: RedisServer): Promise<void> {
  for (const key of (await server.command("KEYS", "*")) as string[]) {
    if (Buffer.byteLength(key) > longestKey) throw new Error(`A key of ${Buffer.byteLength(key)} bytes`);
    const ttlMs = Number(await server.command("PTTL", key));
    if (ttlMs === -1) throw new Error(`The key ${JSON.stringify(key)} never expires`);
  }
  await server.command("FLUSHALL");
}
