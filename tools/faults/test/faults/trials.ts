import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProxyMode, RedisCluster, RedisServer } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import type { OnStoreErrorName } from "./limits.js";
import { type Acts, clusterScene, type Fault, probe, type RedisActs, redisScene, type Servers, sentinelScene } from "./scene.js";

type Kind = Omit<Fault, "name" | "start">;

function onRedis(name: string, acts: RedisActs, kind: Kind = {}): Fault {
  return { name, ...kind, start: () => redisScene(acts) };
}

/** Closes all connections and refuses new ones. */
function sever({ proxy }: Servers): void {
  proxy.refuse();
  proxy.cut();
}

function setting(name: string, value: string | number, usual: string | number): Acts<Servers> {
  return {
    strike: ({ redis }) => redis.command("CONFIG", "SET", name, value),
    lift: ({ redis }) => redis.command("CONFIG", "SET", name, usual),
  };
}

/** CLIENT PAUSE for all commands. Only its end lifts it, because CLIENT UNPAUSE would wait too. */
function pause(mode: "WRITE" | "ALL"): RedisActs {
  return {
    strike: ({ redis }) => redis.command("CLIENT", "PAUSE", 1000, mode),
    lift: ({ redis }) => redis.command(...(mode === "ALL" ? ["PING"] : ["CLIENT", "UNPAUSE"])),
  };
}

/** Drops or corrupts one direction, until the connections are closed. */
function mangle(way: "requests" | "replies", mode: ProxyMode): Acts<Servers> {
  return {
    strike({ proxy }) {
      proxy[way].mode = mode;
    },
    lift({ proxy }) {
      proxy.cut();
      proxy[way].mode = "pass";
    },
  };
}

/** Another client's script that never ends. */
const busy: RedisActs = {
  config: { "lua-time-limit": 20 },
  async strike({ redis }) {
    const other = new Redis(redis.port);
    other.eval("while true do end", 0).catch(() => other.disconnect());
    while (
      await redis.command("PING").then(
        () => true,
        () => false,
      )
    );
  },
  lift: ({ redis }) => redis.command("SCRIPT", "KILL"),
};

/** A server that restarts slowly because it loads many saved keys. */
const loading: RedisActs = {
  config: { dbfilename: "kept.rdb", "key-load-delay": 300, "loading-process-events-interval-bytes": 1024 },
  async strike({ redis }) {
    await redis.command("EVAL", "for i = 1, 2500 do redis.call('SET', 'key:' .. i, i) end", 0);
    await redis.command("CLIENT", "PAUSE", 10_000, "WRITE");
    await redis.command("SAVE");
    await redis.restart();
  },
  async lift({ redis }) {
    while ((await redis.info("persistence"))["loading"] === "1");
  },
};

/** A server that cannot save: its folder is gone. */
const unsaved: RedisActs = {
  config: { save: '"3600 1"' },
  async strike({ redis }) {
    rmSync(redis.dir, { recursive: true });
    await redis.command("BGSAVE");
    while ((await redis.info("persistence"))["rdb_last_bgsave_status"] === "ok");
  },
  lift: ({ redis }) => redis.command("CONFIG", "SET", "stop-writes-on-bgsave-error", "no"),
};

/** One master of a Cluster fails while the others work. */
async function slotOf(cluster: RedisCluster): Promise<number> {
  return Number(await (cluster.nodes[0] as RedisServer).command("CLUSTER", "KEYSLOT", probe));
}

const killed = onRedis("killed", { strike: ({ redis }) => redis.kill(), lift: ({ redis }) => redis.start() }, { forgets: "when struck" });
const stopped = onRedis("stopped (SIGSTOP)", { strike: ({ redis }) => redis.pause(), lift: ({ redis }) => redis.resume() });

const faults: readonly Fault[] = [
  killed,
  stopped,
  onRedis(
    "restarted empty",
    { strike: ({ redis }) => redis.restart(), lift: () => undefined },
    { forgets: "when struck", brief: true, decides: true },
  ),
  onRedis("down at boot", { before: sever, strike: () => undefined, lift: ({ proxy }) => proxy.accept() }, { atBoot: true }),
  onRedis("slow: 300 ms", {
    strike({ proxy }) {
      proxy.requests.latencyMs = 300;
    },
    lift({ proxy }) {
      proxy.requests.latencyMs = 0;
    },
  }),
  onRedis("requests lost", mangle("requests", "drop")),
  onRedis("replies lost", mangle("replies", "drop"), { decides: true }),
  onRedis("replies corrupted", mangle("replies", "corrupt"), { decides: true }),
  onRedis("half-closed", {
    async strike({ proxy }) {
      proxy.refuse();
      proxy.halfClose();
      // Until a library has seen the end, Redis still gets what it sends.
      while (proxy.connections > 0) await sleep(1);
    },
    lift: ({ proxy }) => proxy.accept(),
  }),
  onRedis("cut off", { strike: sever, lift: ({ proxy }) => proxy.accept() }),
  onRedis("refusing (maxclients)", {
    async strike({ redis, proxy }) {
      await redis.command("CONFIG", "SET", "maxclients", 1);
      proxy.cut();
    },
    lift: ({ redis }) => redis.command("CONFIG", "SET", "maxclients", 1000),
  }),
  onRedis("read-only (replica)", {
    strike: ({ redis }) => redis.command("REPLICAOF", "127.0.0.1", 1),
    lift: ({ redis }) => redis.command("REPLICAOF", "NO", "ONE"),
  }),
  onRedis("out of memory", setting("maxmemory", 1, 0)),
  onRedis("too few replicas (NOREPLICAS)", setting("min-replicas-to-write", 1, 0)),
  onRedis("cannot save (MISCONF)", unsaved),
  onRedis("BUSY with a script", busy),
  onRedis("CLIENT PAUSE WRITE", pause("WRITE")),
  onRedis("CLIENT PAUSE ALL", pause("ALL")),
  onRedis("LOADING", loading),
  {
    name: "Cluster: a master killed",
    forgets: "when lifted",
    start: () =>
      clusterScene({
        async strike(cluster) {
          await (await cluster.masterOf(await slotOf(cluster))).kill();
        },
        lift: (cluster) => cluster.healthy(),
      }),
  },
  {
    name: "Cluster: a planned failover",
    brief: true,
    decides: true,
    start: () => clusterScene({ strike: async (cluster) => cluster.failover(await slotOf(cluster)), lift: () => undefined }),
  },
  {
    name: "Sentinel: the master killed",
    forgets: "when lifted",
    start: () =>
      sentinelScene({
        async strike(group) {
          await (await group.master()).kill();
        },
        lift: (group) => group.healthy(),
      }),
  },
];

/** A fault, and the onStoreError option during it. */
export interface Trial {
  readonly name: string;
  readonly fault: Fault;
  readonly onStoreError: OnStoreErrorName;
}

export const trials: readonly Trial[] = [
  ...faults.map((fault): Trial => ({ name: fault.name, fault, onStoreError: "allow" })),
  ...[killed, stopped].flatMap((fault) =>
    (["deny", "fallback"] as const).map((onStoreError): Trial => ({ name: `${fault.name}, "${onStoreError}"`, fault, onStoreError })),
  ),
];
