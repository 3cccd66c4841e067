import { setTimeout as sleep } from "node:timers/promises";
import { consumeAll, createLimiter, type Limiter, tokenBucket } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { type RedisCluster, type RedisServer, startCluster } from "@floodgate/test-servers";
import { Cluster } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

describe("limits in several slots of a Cluster", () => {
  let cluster: RedisCluster;
  let redis: Cluster;

  beforeAll(async () => {
    cluster = await startCluster({ replicasPerMaster: 0 });
    redis = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
  }, 60_000);
  afterAll(async () => {
    redis?.disconnect();
    await cluster?.stop();
  });

  it("are decided within `timeoutMs` even if a node hangs before its refund", async () => {
    const store = redisStore(redis, { denyCache: false });
    const limiterOf = (name: string, timeoutMs: number): Limiter<"async"> =>
      createLimiter({ name, policy: tokenBucket({ capacity: 1, refill: 1, every: "30d" }), store, timeoutMs });
    const nodeOf = async (key: string): Promise<RedisServer> =>
      cluster.masterOf(Number(await redis.cluster("KEYSLOT", `floodgate:{${key}}`)));
    const used = await nodeOf("used");
    let n = 0;
    while ((await nodeOf(`fresh-${n}`)) === used) n++;
    const fresh = await nodeOf(`fresh-${n}`);

    const limiter = limiterOf("patient", 900);
    await limiter.consume("used");
    used.pause();
    const whole = consumeAll([
      { limiter, key: "used" },
      { limiter, key: `fresh-${n}` },
    ]);
    await sleep(400);
    fresh.pause();
    used.resume();
    // 200 ms after the decision's deadline, and 200 ms before a deadline that restarted with the second round trip.
    const later = limiterOf("hasty", 700).consume(`fresh-${n}`);
    const first = await Promise.race([whole, later]);
    fresh.resume();
    expect(first).toBe(await whole);
    expect(first).toMatchObject({ allowed: false, decision: { degraded: false } });
  });
});
