import { parseStoredKey, type StoredKey } from "@floodgate/store-redis";
import type { Cluster, Redis } from "ioredis";
import { Failure } from "../failure.js";

/** Keys of a store in Redis. */
export interface StoredKeys {
  readonly keys: readonly StoredKey[];
  /** Whether there are more than were asked for. */
  readonly more: boolean;
}

/** Which keys are listed; by default all. */
interface Wanted {
  /** Of this limit only. */
  readonly name?: string;
  readonly isWanted?: (key: string) => boolean;
}

/**
 * Lists keys of a store. It uses SCAN, which does not block Redis. On a Cluster it asks every node.
 * @throws Failure if the user of Redis may not use SCAN, or if this is one node of a Cluster, which has only some of the keys.
 */
export async function storedKeys(redis: Redis | Cluster, prefix: string, most: number, wanted: Wanted = {}): Promise<StoredKeys> {
  if (!redis.isCluster && (await isClusterNode(redis as Redis))) {
    throw new Failure("unreachable", "this Redis is a node of a Cluster, so it has only some of the keys. Add --cluster.");
  }
  try {
    return await scan(redis, prefix, most, wanted);
  } catch (cause) {
    const { message } = cause as Error;
    if (!message.startsWith("NOPERM")) throw cause;
    throw new Failure("unreachable", `the user of Redis may not list keys: ${message}. Allow it: ACL SETUSER <user> +scan`, { cause });
  }
}

async function isClusterNode(redis: Redis): Promise<boolean> {
  // A user may have no permission to ask. Then this is taken for a Redis without a Cluster.
  const info = await redis.info("cluster").catch(() => "");
  return info.includes("cluster_enabled:1");
}

async function scan(redis: Redis | Cluster, prefix: string, most: number, { name, isWanted }: Wanted): Promise<StoredKeys> {
  const match = `${literal(prefix)}:{*${name === undefined ? "" : `}:${literal(name)}:*`}`;
  const keys: StoredKey[] = [];
  // SCAN may return a key twice. Held units and the state beside them are one.
  const seen = new Set<string>();
  for await (const redisKey of keysLike(redis, match)) {
    const state = redisKey.replace(/:holds$/, "");
    const stored = seen.has(state) ? undefined : parseStoredKey(prefix, redisKey);
    if (stored === undefined || isWanted?.(stored.key) === false) continue;
    if (keys.length === most) return { keys, more: true };
    seen.add(state);
    keys.push(stored);
  }
  return { keys, more: false };
}

/** The names of the keys that match a pattern, on all nodes of a Cluster. */
async function* keysLike(redis: Redis | Cluster, match: string): AsyncGenerator<string> {
  for (const node of redis.isCluster ? (redis as Cluster).nodes("master") : [redis as Redis]) {
    for await (const found of node.scanStream({ match, count: 1000 })) yield* found as string[];
  }
}

/** What processes have leased of a key. */
export interface Leased {
  /** The units that Redis has charged ahead. The processes may have spent them already. */
  readonly units: number;
  readonly processes: number;
}

/** Undefined if no process leases the key, or the user of Redis may not look. */
export async function leasedOf(redis: Redis | Cluster, redisKey: string): Promise<Leased | undefined> {
  try {
    const processes = await redis.zcard(`${redisKey}:leases`);
    if (processes === 0) return undefined;
    const records = new Set<string>();
    for await (const record of keysLike(redis, `${literal(redisKey)}:lease-*`)) records.add(record);
    const texts = await Promise.all([...records].map((record) => redis.get(record)));
    // A record without units is that of a lease which ended before it began.
    return { units: texts.reduce((sum, text) => sum + (Number.parseInt(text ?? "", 10) || 0), 0), processes };
  } catch {
    return undefined;
  }
}

/** A text as a pattern that matches only the text. */
function literal(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}

/** The name of the limit that a stored name belongs to. A limit's name is ASCII, so what follows a dot (`login·rejections`) is its own bookkeeping. */
export function limitName(storedName: string): string {
  return storedName.split("·", 1)[0] as string;
}
