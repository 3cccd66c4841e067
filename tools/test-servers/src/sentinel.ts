import { follows, ready, startAll } from "./group.js";
import type { RedisServer } from "./redis-server.js";
import type { Reply } from "./resp.js";
import { type RedisOptions, startRedis, startServer } from "./start-redis.js";
import { until } from "./until.js";

export interface SentinelOptions extends Omit<RedisOptions, "port" | "replicaOf"> {
  /** What clients ask the sentinel for; default `mymaster`. */
  name?: string;
  /** At least 1, which is the default. */
  replicas?: number;
}

/** A master and its replicas, watched by a sentinel, which decides alone. `startSentinel` makes one. */
export class RedisSentinel {
  /** What clients ask the sentinel for. */
  readonly name: string;
  readonly sentinel: RedisServer;
  /** The master and its replicas; the first began as master. */
  readonly nodes: readonly RedisServer[];

  constructor(name: string, sentinel: RedisServer, nodes: readonly RedisServer[]) {
    this.name = name;
    this.sentinel = sentinel;
    this.nodes = nodes;
  }

  /** The node that the sentinel says is the master. */
  async master(): Promise<RedisServer> {
    const { port } = pairsOf(await this.sentinel.command("SENTINEL", "MASTER", this.name));
    return this.nodes.find((node) => String(node.port) === port) as RedisServer;
  }

  /** Has a replica take over, and resolves with it when all know. The master must be running. */
  async failover(): Promise<RedisServer> {
    const before = await this.master();
    await this.sentinel.command("SENTINEL", "FAILOVER", this.name);
    await until("the sentinel names another master", async () => (await this.master()) !== before);
    await this.healthy();
    return this.master();
  }

  /**
   * Resolves when the sentinel names a master that is running and is one, and all other running nodes are its replicas, in
   * sync: after the master was killed, once a replica has taken over.
   */
  async healthy(): Promise<void> {
    await until("the sentinel, the master and its replicas agree", async () => {
      const master = await this.master();
      if (!master.running || (await master.info("replication"))["role"] !== "master") return false;
      const replicas = this.nodes.filter((node) => node !== master && node.running);
      const followed = await Promise.all(replicas.map((replica) => follows(replica, master)));
      const known = ((await this.sentinel.command("SENTINEL", "REPLICAS", this.name)) as Reply[]).map(pairsOf);
      const fit = known.filter((seen) => seen["flags"] === "slave" && seen["master-link-status"] === "ok").map(({ port }) => Number(port));
      return replicas.every(({ port }, i) => followed[i] && fit.includes(port));
    });
  }

  /** Ends them all for good. */
  async stop(): Promise<void> {
    await Promise.all([this.sentinel, ...this.nodes].map((server) => server.stop()));
  }
}

/** Starts a master, its replicas and a sentinel, and resolves when they know each other. */
export async function startSentinel(options: SentinelOptions = {}): Promise<RedisSentinel> {
  const { name = "mymaster", replicas = 1, ...rest } = options;
  const [sentinel, ...nodes] = (await startAll([
    startServer({ binary: rest.binary }, ["--sentinel"]),
    ...Array.from({ length: 1 + replicas }, () => startRedis(rest)),
  ])) as [RedisServer, ...RedisServer[]];
  return ready(new RedisSentinel(name, sentinel, nodes), async (group) => {
    const [master, ...others] = nodes as [RedisServer, ...RedisServer[]];
    await Promise.all(others.map((replica) => replica.command("REPLICAOF", master.host, master.port)));
    // In more of a hurry than elsewhere, but connecting anew (a ping's period) and a promoted replica's news (each second, good
    // for five pings' periods) stay within the time after which a server counts as down or its news as stale.
    await sentinel.command("SENTINEL", "DEBUG", "info-period", 100, "publish-period", 100, "ping-period", 300);
    await sentinel.command("SENTINEL", "MONITOR", name, master.host, master.port, 1);
    await sentinel.command("SENTINEL", "SET", name, "down-after-milliseconds", 1000, "failover-timeout", 3000);
    await sentinel.command("SENTINEL", "SET", name, "parallel-syncs", replicas);
    await group.healthy();
  });
}

/** A list of names, each followed by its value. */
function pairsOf(list: Reply): Record<string, string> {
  const words = list as string[];
  return Object.fromEntries(words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1] as string]] : [])));
}
