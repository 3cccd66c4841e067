import { fixedWindow, gcra, type Policy, slidingWindowCounter, slidingWindowLog, tokenBucket } from "@floodgate/core";
import type { RedisServer } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { actions, LeaseWorld, withHotKey } from "./lease-world.js";
import { patienceMs } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

vi.setConfig({ testTimeout: 120_000 });

let server: RedisServer;
let clients: Redis[] = [];
useRedis((started) => {
  server = started;
});
beforeAll(() => {
  clients = Array.from({ length: 3 }, () => new Redis(server.port));
});
afterAll(() => {
  for (const client of clients) client.disconnect();
});

async function serverUs(): Promise<number> {
  const [seconds, us] = (await server.command("TIME")) as string[];
  return Number(seconds) * 1_000_000 + Number(us);
}

const beside = fixedWindow({ limit: 90, window: "700ms" });

const policies: [string, Policy][] = [
  ["fixed window", fixedWindow({ limit: 80, window: "500ms" })],
  ["log", slidingWindowLog({ limit: 80, window: "500ms" })],
  ["counter", slidingWindowCounter({ limit: 80, window: "500ms" })],
  ["counter of six buckets", slidingWindowCounter({ limit: 80, window: "600ms", buckets: 6 })],
  ["strict counter", slidingWindowCounter({ limit: 80, window: "600ms", buckets: 6, strict: true })],
  ["token bucket", tokenBucket({ capacity: 80, refill: 80, every: "500ms" })],
  ["gcra", gcra({ limit: 80, window: "500ms", burst: 40 })],
];

let prefixes = 0;

describe.each(policies)("random traffic of three processes with leases under a %s", (name, policy) => {
  const isExact = !/bucket$|gcra/.test(name);

  it("is allowed as the policy says, and gives back everything unused in time", async () => {
    let leased = 0;
    await fc.assert(
      fc.asyncProperty(fc.noShrink(actions), async (steps) => {
        const world = new LeaseWorld(clients, `traffic-${prefixes++}`, [policy, beside], patienceMs);
        for (const step of steps) await world.act(step, serverUs);
        world.check();
        if (isExact) await world.settleDown();
        leased += world.leased;
        world.close();
      }),
      withHotKey(10),
    );
    expect(leased).toBeGreaterThan(0);
  });
});
