import { isInSync, type RedisServer, type Reply, startRedis, startServer } from "./redis-server.js";
import { until } from "./until.js";

/** A master and its replicas, watched by a single sentinel. `startSentinel` makes one. */
export class RedisSentinel {
  /** The master's name, which clients use. */
  readonly name: string = "mymaster";
  readonly sentinel: RedisServer;
  /** All nodes; the first was the original master. */
  readonly nodes: readonly RedisServer[];

  constructor(sentinel: RedisServer, nodes: readonly RedisServer[]) {
    this.sentinel = sentinel;
    this.nodes = nodes;
  }

  /** The current master according to the sentinel. */
  async master(): Promise<RedisServer> {
    const { port } = pairsOf(await this.sentinel.command("SENTINEL", "MASTER", this.name));
    return this.nodes.find((node) => String(node.port) === port) as RedisServer;
  }

  /** Promotes a replica, and resolves with it when all know. The master must be running. */
  async failover(): Promise<RedisServer> {
    const before = await this.master();
    await this.sentinel.command("SENTINEL", "FAILOVER", this.name);
    await until("the sentinel names another master", async () => (await this.master()) !== before);
    await this.healthy();
    return this.master();
  }

  /**
   * Resolves when the sentinel names a running master, and all other running nodes are its replicas and in sync. After the master was
   * killed, that is when a replica has taken over.
   */
  async healthy(): Promise<void> {
    await until("the sentinel, the master and its replicas agree", async () => {
      const master = await this.master();
      if (!master.running || (await master.info("replication"))["role"] !== "master") return false;
      const replicas = this.nodes.filter((node) => node !== master && node.running);
      const followed = await Promise.all(replicas.map((replica) => isInSync(replica, master)));
      const known = ((await this.sentinel.command("SENTINEL", "REPLICAS", this.name)) as Reply[]).map(pairsOf);
      const fit = known.filter((seen) => seen["flags"] === "slave" && seen["master-link-status"] === "ok").map(({ port }) => Number(port));
      return replicas.every(({ port }, i) => followed[i] && fit.includes(port));
    });
  }

  /** Stops all of them permanently. */
  async stop(): Promise<void> {
    await Promise.all([this.sentinel, ...this.nodes].map((server) => server.stop()));
  }
}

/** Starts a master, its replicas (at least 1, which is the default) and a sentinel, and resolves when they know each other. */
export async function startSentinel({ replicas = 1 }: { replicas?: number } = {}): Promise<RedisSentinel> {
  const [sentinel, master, ...others] = await Promise.all([
    startServer({}, ["--sentinel"]),
    startRedis(),
    ...Array.from({ length: replicas }, () => startRedis()),
  ]);
  const group = new RedisSentinel(sentinel, [master, ...others]);
  const { name } = group;
  await Promise.all(others.map((replica) => replica.command("REPLICAOF", master.host, master.port)));
  // Faster than the defaults. But reconnecting (one ping period) and a promoted replica's status (each second, valid for five
  // ping periods) must fit into the time after which a server counts as down or its status as stale.
  await sentinel.command("SENTINEL", "DEBUG", "info-period", 100, "publish-period", 100, "ping-period", 300);
  await sentinel.command("SENTINEL", "MONITOR", name, master.host, master.port, 1);
  await sentinel.command("SENTINEL", "SET", name, "down-after-milliseconds", 1000, "failover-timeout", 3000);
  await sentinel.command("SENTINEL", "SET", name, "parallel-syncs", replicas);
  await group.healthy();
  return group;
}

/** Converts a flat list of names and values to an object. */
function pairsOf(list: Reply): Record<string, string> {
  const words = list as string[];
  return Object.fromEntries(words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1] as string]] : [])));
}
