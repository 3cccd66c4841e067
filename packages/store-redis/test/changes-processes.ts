import type { Decision } from "@floodgate/core";
import type { Limit } from "@floodgate/core/store";
import { type RedisCluster, type RedisServer, startCluster } from "@floodgate/test-servers";
import { Cluster, Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { type RedisStoreOptions, redisStore } from "../src/index.js";
import { limitOf, patienceMs, yearly } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

export const maxAgeMs = 1000;

/** What the processes of a test share. */
export const world = {
  server: undefined as unknown as RedisServer,
  /** Started by `useCluster`. */
  cluster: undefined as unknown as RedisCluster,
  nowMs: 1_789_948_800_000,
  prefix: "",
};
let prefixes = 0;
const open: (Redis | Cluster)[] = [];

/** From now on, processes are new ones, with keys of their own. */
export function startAnew(): void {
  for (const client of open.splice(0)) client.disconnect();
  world.prefix = `changes-${prefixes++}`;
}

/** Starts a server for the test file. */
export function useProcesses(): void {
  useRedis((started) => {
    world.server = started;
  });
  beforeEach(startAnew);
  afterEach(startAnew);
}

export function useCluster(): void {
  beforeAll(async () => {
    world.cluster = await startCluster();
  });
  afterAll(() => world.cluster?.stop());
}

/** A process with a connection of its own, under the clock of the test. */
export class Process {
  readonly client: Redis | Cluster;
  readonly store: ReturnType<typeof redisStore>;
  /** The announcements and reads that it has sent. */
  sent = 0;

  constructor(onCluster = false, options: RedisStoreOptions = {}) {
    this.client = onCluster
      ? new Cluster(world.cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port })))
      : new Redis(world.server.port);
    open.push(this.client);
    const evaluate = this.client.eval.bind(this.client) as (...args: unknown[]) => Promise<unknown>;
    this.client.eval = ((...args: unknown[]) => {
      if (args[2] === `${world.prefix}:changes`) this.sent++;
      return evaluate(...args);
    }) as never;
    this.store = redisStore(this.client, { prefix: world.prefix, clock: () => world.nowMs, denyCache: { maxAgeMs }, ...options });
  }

  /** Consumes, and waits until everything that was sent meanwhile is answered. */
  async consume(limit: Limit, key: string, cost = 1): Promise<{ readonly decision: Decision; readonly isCached: boolean }> {
    const answer = this.store.consume(limit, key, cost, patienceMs);
    const decision = await answer;
    await this.answered();
    return { decision, isCached: !(answer instanceof Promise) };
  }

  async answered(): Promise<void> {
    await new Promise(setImmediate);
    // Over the same connection as announcements and reads.
    await this.client.get(`${world.prefix}:changes`).catch(() => undefined);
    await new Promise(setImmediate);
  }
}

/** A process that has heard for long enough that nobody announces anything. */
export async function listening(onCluster = false): Promise<Process> {
  const process = new Process(onCluster);
  const limit = limitOf(yearly(1));
  for (let i = 0; i < 2; i++) await process.consume(limit, "first");
  world.nowMs += 1200;
  return process;
}

/** Asserts that a process rejects a key by its cache for so long. */
export async function expectCached(process: Process, limit: Limit, key: string, forMs: number): Promise<void> {
  for (let ms = 0; ms < forMs; ms += 500) {
    world.nowMs += 500;
    expect(await process.consume(limit, key)).toMatchObject({ isCached: true, decision: { allowed: false } });
  }
}

/** After how much time a process asks Redis for a key again. */
export async function askedAfterMs(
  process: Process,
  limit: Limit,
  key: string,
): Promise<{ readonly ms: number; readonly decision: Decision }> {
  for (let ms = 0; ; ms += 100) {
    const { decision, isCached } = await process.consume(limit, key);
    if (!isCached) return { ms, decision };
    world.nowMs += 100;
  }
}
