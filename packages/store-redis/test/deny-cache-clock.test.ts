import { setTimeout as sleep } from "node:timers/promises";
import { fixedWindow, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { type RedisServer, startProxy, type TcpProxy } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import type { RedisStoreOptions } from "../src/index.js";
import { runsDuring } from "./commands.js";
import { limitOf, patienceMs, patientStore, yearly } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let server: RedisServer;
let redis: Redis;
useRedis((started, client) => {
  server = started;
  redis = client;
});

const storeOf = (options?: RedisStoreOptions, client: Redis = redis) => patientStore(client, options);

async function serverMs(): Promise<number> {
  const [seconds, micros] = (await server.command("TIME")) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

describe("the deny cache by the server's clock", () => {
  let proxy: TcpProxy;
  let distant: Redis;
  beforeAll(async () => {
    proxy = await startProxy(server.port);
    distant = new Redis(proxy.port);
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  afterAll(() => {
    distant?.disconnect();
    proxy?.stop();
  });

  it.each([0, 3, 20])("never rejects a request that Redis would allow, at a latency of %i ms", async (latencyMs) => {
    proxy.requests.latencyMs = latencyMs;
    proxy.replies.latencyMs = latencyMs;
    const store = await storeOf({}, distant);
    const policies = [
      tokenBucket({ capacity: 1, refill: 1, every: "60ms" }),
      slidingWindowLog({ limit: 1, window: "60ms" }),
      fixedWindow({ limit: 1, window: "60ms" }),
    ];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...policies), fc.nat(2 * latencyMs + 4), async (policy, earlyMs) => {
        const limit = limitOf(policy);
        await store.consume(limit, "k");
        let decision = await store.consume(limit, "k");
        const passesAtMs = decision.atMs + decision.retryAfterMs;
        await sleep(Math.max(0, decision.retryAfterMs - earlyMs));
        while (!decision.allowed) {
          const beforeMs = await serverMs();
          decision = await store.consume(limit, "k");
          if (!decision.allowed) expect(beforeMs).toBeLessThan(passesAtMs);
        }
      }),
      runs(15),
    );
  });

  it("ignores this process's own clock", async () => {
    proxy.requests.latencyMs = 0;
    proxy.replies.latencyMs = 0;
    const store = await storeOf();
    for (const systemTime of [0, 4_102_444_800_000]) {
      vi.useFakeTimers({ toFake: ["Date"], now: systemTime });
      const [slow, quick] = [limitOf(yearly(1)), limitOf(tokenBucket({ capacity: 1, refill: 1, every: "50ms" }))];
      for (const limit of [slow, slow, quick, quick]) await store.consume(limit, "k");
      vi.setSystemTime(systemTime + 3_600_000);
      expect(await runsDuring(server, async () => expect((await store.consume(slow, "k")).allowed).toBe(false))).toBe(0);
      await expect.poll(async () => (await store.consume(quick, "k")).allowed, { interval: 5, timeout: patienceMs }).toBe(true);
    }
  });
});
