import { fixedWindow, type Policy, slidingWindowCounter, tokenBucket } from "@floodgate/core";
import { type RedisCluster, type RedisServer, startCluster } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { actions, LeaseWorld, withHotKey } from "./lease-world.js";
import { type Connected, libraries } from "./libraries.js";
import { patienceMs } from "./patient-store.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let cluster: RedisCluster;
/** Each run has keys of its own, also when a test is repeated. */
let worlds = 0;
let connected: Connected[] = [];
beforeAll(async () => {
  cluster = await startCluster({ replicasPerMaster: 0 });
  const ports = cluster.nodes.map(({ port }) => port);
  connected = await Promise.all([
    libraries["ioredis 6"].connectCluster(ports),
    libraries["redis 6"].connectCluster(ports),
    libraries["ioredis 6"].connectCluster(ports),
  ]);
});
afterAll(async () => {
  await Promise.all(connected.map((client) => client.close()));
  await cluster?.stop();
});

async function serverUs(): Promise<number> {
  // The nodes share the clock of this machine.
  const [seconds, us] = (await (cluster.nodes[0] as RedisServer).command("TIME")) as string[];
  return Number(seconds) * 1_000_000 + Number(us);
}

describe.each<[string, Policy]>([
  ["fixed window", fixedWindow({ limit: 80, window: "500ms" })],
  ["counter", slidingWindowCounter({ limit: 80, window: "500ms" })],
  ["token bucket", tokenBucket({ capacity: 80, refill: 80, every: "500ms" })],
])("random traffic of three processes on a Cluster with leases under a %s", (_, policy) => {
  it("is allowed as the policy says", async () => {
    let leased = 0;
    await fc.assert(
      fc.asyncProperty(fc.noShrink(actions), async (steps) => {
        const clients = connected.map(({ client }) => client);
        const world = new LeaseWorld(
          clients,
          `${policy.algorithm}-${worlds++}`,
          [policy, fixedWindow({ limit: 90, window: "700ms" })],
          patienceMs,
        );
        for (const step of steps) await world.act(step, serverUs);
        world.check();
        if (policy.algorithm !== "token-bucket") await world.settleDown();
        leased += world.leased;
        world.close();
      }),
      withHotKey(8),
    );
    expect(leased).toBeGreaterThan(0);
  });
});
