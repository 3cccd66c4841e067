import { concurrency, fixedWindow, type Policy, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { asCharge, createLimit, type Decision, type Limit, type Store } from "@floodgate/core/store";
import { type RedisServer, startProxy, startRedis, type TcpProxy } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { redisStore } from "../src/index.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 20_000;
const quota = 10;

const policies: readonly Policy[] = [
  fixedWindow({ limit: quota, window: "365d" }),
  tokenBucket({ capacity: quota, refill: 1, every: "30d" }),
  slidingWindowLog({ limit: quota, window: "30d" }),
];

describe("a replica that is promoted before it has all", () => {
  let master: RedisServer;
  let link: TcpProxy;
  let replica: RedisServer;
  const clients: Redis[] = [];
  let [before, after]: Store<"async">[] = [];
  const limits = policies.map((policy) => createLimit(policy.algorithm, policy));
  const slots = createLimit("slots", concurrency({ limit: 5, hold: "1h" }));
  const taken: Decision[] = [];

  async function consume(store: Store<"async"> | undefined, limit: Limit, count: number): Promise<Decision[]> {
    const asked = Array.from({ length: count }, () => store?.consume(limit, "key", 1, timeoutMs) as Promise<Decision>);
    return (await Promise.all(asked)).filter(({ allowed }) => allowed);
  }

  beforeAll(async () => {
    master = await startRedis();
    link = await startProxy(master.port);
    replica = await startRedis({ replicaOf: link });
    [before, after] = [master, replica].map(({ port }) => {
      const client = new Redis(port);
      clients.push(client);
      return redisStore(client, { denyCache: false });
    });
    for (const limit of limits) expect(await consume(before, limit, 6)).toHaveLength(6);
    taken.push(...(await consume(before, slots, 3)));
    const offset = async (server: RedisServer) => (await server.info("replication"))["master_repl_offset"];
    await vi.waitUntil(async () => (await offset(master)) === (await offset(replica)), { timeout: 20_000 });
    link.replies.mode = "hold";
    for (const limit of limits) expect(await consume(before, limit, quota)).toHaveLength(4);
    taken.push(...(await consume(before, slots, 5)));
    expect(taken).toHaveLength(5);
    link.stop();
    await replica.command("REPLICAOF", "NO", "ONE");
  });
  afterAll(async () => {
    for (const client of clients) client.disconnect();
    link?.stop();
    await Promise.all([master?.stop(), replica?.stop()]);
  });

  it.each(limits)("lets pass again what it does not know of, and no more: $name", async (limit) => {
    expect(await consume(after, limit, quota)).toHaveLength(4);
  });

  it("a slot that it does not know of releases no other", async () => {
    const more = await consume(after, slots, 5);
    expect(more).toHaveLength(2);
    for (const unknown of taken.slice(3)) await after?.settle(slots, "key", asCharge(unknown), 0, timeoutMs);
    expect((await after?.peek(slots, "key", timeoutMs))?.remaining).toBe(0);
    for (const known of [...taken.slice(0, 3), ...more]) await after?.settle(slots, "key", asCharge(known), 0, timeoutMs);
    expect((await after?.peek(slots, "key", timeoutMs))?.remaining).toBe(5);
  });
});
