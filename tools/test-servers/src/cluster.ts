import { loopback } from "./port.js";
import { fieldsOf, type RedisConfig, type RedisOptions, type RedisServer, startRedis } from "./redis-server.js";
import { until } from "./until.js";

const slotCount = 16_384;

export interface ClusterOptions extends Omit<RedisOptions, "replicaOf"> {
  /** At least 3, which is the default. */
  masters?: number;
  /** Default 1. */
  replicasPerMaster?: number;
}

/** A Redis Cluster with its own servers. `startCluster` makes one. */
export class RedisCluster {
  /** All nodes: first the original masters, in the order of their slots. */
  readonly nodes: readonly RedisServer[];

  constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes;
  }

  /** The node that serves (or last served) a slot, as a running node sees it. */
  async masterOf(slot: number): Promise<RedisServer> {
    return (await this.#nodesOf(slot))[0];
  }

  /** The replicas of the node that serves a slot. */
  async replicasOf(slot: number): Promise<RedisServer[]> {
    return (await this.#nodesOf(slot)).slice(1);
  }

  /** Promotes a replica of a slot's master, and resolves with it when all nodes know. Both must be running. */
  async failover(slot: number): Promise<RedisServer> {
    const replica = (await this.replicasOf(slot)).find(({ running }) => running);
    if (replica === undefined) throw new Error(`The master of slot ${slot} has no running replica.`);
    await replica.command("CLUSTER", "FAILOVER");
    await until(`the replica on port ${replica.port} serves slot ${slot}`, async () => (await this.masterOf(slot)) === replica);
    await this.healthy();
    return replica;
  }

  /**
   * Resolves when the running nodes agree on all slots, each slot is served, and replicas are in sync. After a master was killed, that
   * is when its replica has taken over.
   */
  async healthy(): Promise<void> {
    await until("the Cluster is healthy", async () => {
      const states = await Promise.all(this.#running().map((node) => this.#stateOf(node)));
      return states.every((state) => state !== undefined && state === states[0]);
    });
  }

  /** Stops all nodes permanently. */
  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  /** All roles and slots as a node sees them; undefined while it sees an incomplete Cluster or is not in sync with its master. */
  async #stateOf(node: RedisServer): Promise<string | undefined> {
    const { cluster_state: state } = fieldsOf(await node.command("CLUSTER", "INFO"));
    const { role, master_link_status: link } = await node.info("replication");
    if (state !== "ok" || (role === "slave" && link !== "up")) return undefined;
    const ranges = await rangesOf(node);
    const served = ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
    const seen = new Set(ranges.flatMap(({ ports }) => ports));
    const running = this.#running();
    const isWhole = served === slotCount && seen.size === running.length && running.every(({ port }) => seen.has(port));
    return isWhole ? JSON.stringify(ranges) : undefined;
  }

  /** The master of a slot, then its replicas. @throws Error if nobody serves the slot. */
  async #nodesOf(slot: number): Promise<[RedisServer, ...RedisServer[]]> {
    const ranges = await rangesOf(this.#running()[0] as RedisServer);
    const range = ranges.find(({ first, last }) => first <= slot && slot <= last);
    if (range === undefined) throw new Error(`Nobody serves slot ${slot}.`);
    return range.ports.map((port) => this.nodes.find((node) => node.port === port)) as [RedisServer, ...RedisServer[]];
  }

  #running(): RedisServer[] {
    return this.nodes.filter((node) => node.running);
  }
}

const config: RedisConfig = {
  "cluster-enabled": "yes",
  "cluster-announce-ip": loopback,
  "cluster-allow-replica-migration": "no",
};

/** Starts a Redis Cluster, and resolves when all nodes agree and the replicas are in sync. Takes some seconds. */
export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { masters = 3, replicasPerMaster = 1, ...rest } = options;
  // After this many silent milliseconds a node counts as failed, and its replica takes over. Without replicas a node that a busy
  // machine keeps waiting would only fail the Cluster.
  const failover: RedisConfig = { "cluster-node-timeout": replicasPerMaster > 0 ? 1000 : 60_000 };
  const one = { ...rest, config: { ...config, ...failover, ...rest.config } };
  const nodes = await Promise.all(Array.from({ length: masters * (1 + replicasPerMaster) }, () => startRedis(one)));
  await join(nodes, masters);
  const cluster = new RedisCluster(nodes);
  await cluster.healthy();
  return cluster;
}

/** Joins single nodes to one Cluster: the first ones share the slots equally, the others become their replicas in turn. */
async function join(nodes: readonly RedisServer[], masters: number): Promise<void> {
  const ids = await Promise.all(nodes.map(async (node) => String(await node.command("CLUSTER", "MYID"))));
  const firstSlot = (master: number): number => Math.round((slotCount * master) / masters);
  for (const [i, node] of nodes.entries()) {
    // Nodes with equal epochs would have to resolve that first.
    await node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1);
    if (i < masters) await node.command("CLUSTER", "ADDSLOTSRANGE", firstSlot(i), firstSlot(i + 1) - 1);
    for (const other of nodes.slice(0, i)) await node.command("CLUSTER", "MEET", other.host, other.port);
  }
  const replicas = nodes.slice(masters).map(async (node, i) => {
    const masterId = ids[i % masters] as string;
    await until(`the node on port ${node.port} knows its master`, async () => {
      return String(await node.command("CLUSTER", "NODES")).includes(masterId);
    });
    await node.command("CLUSTER", "REPLICATE", masterId);
  });
  await Promise.all(replicas);
}

/** Slots that one node serves. */
interface SlotRange {
  readonly first: number;
  readonly last: number;
  /** Of the master, then of its replicas that have not failed. */
  readonly ports: readonly number[];
}

/** The Cluster as one of its nodes currently sees it, by slot. */
async function rangesOf(node: RedisServer): Promise<SlotRange[]> {
  const ranges = (await node.command("CLUSTER", "SLOTS")) as [first: number, last: number, master: Place, ...replicas: Place[]][];
  return ranges
    .map(([first, last, master, ...replicas]) => ({ first, last, ports: [portOf(master), ...replicas.map(portOf).sort()] }))
    .sort((a, b) => a.first - b.first);
}

type Place = [host: string, port: number];

const portOf = ([, port]: Place): number => port;
