import { memoryStore } from "@floodgate/store-memory";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { fuzzDecisions } from "./decisions.js";
import { fuzzOptions } from "./options.js";
import { fuzzRequests } from "./requests.js";

/** The kinds of fuzzing, and each one's share of the total. */
export const fuzzed: Readonly<Record<string, { readonly share: number; run(count: number): Promise<void> }>> = {
  "decisions in memory": { share: 0.6, run: fuzzMemory },
  "decisions in Redis": { share: 0.25, run: fuzzRedis },
  options: { share: 0.1, run: fuzzOptions },
  requests: { share: 0.05, run: fuzzRequests },
};

/** Hostile decisions on a small memory store, which must not exceed its maxKeys. */
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

/** Hostile decisions in Redis: each key must be short and expire. */
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

/** The longest key in bytes: 200 characters, each escaped to five, plus prefix, name and policy. */
const longestKey = 1100;

async function checkKeys(server: RedisServer): Promise<void> {
  for (const key of (await server.command("KEYS", "*")) as string[]) {
    if (Buffer.byteLength(key) > longestKey) throw new Error(`A key of ${Buffer.byteLength(key)} bytes`);
    const ttlMs = Number(await server.command("PTTL", key));
    if (ttlMs === -1) throw new Error(`The key ${JSON.stringify(key)} never expires`);
  }
  await server.command("FLUSHALL");
}
