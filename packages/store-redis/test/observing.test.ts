import { type FloodgateEvent, observe } from "@floodgate/core";
import { type RedisServer, startProxy } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it, vi } from "vitest";
import { redisStore } from "../src/index.js";
import { runsDuring } from "./commands.js";
import { limitOf, patienceMs, yearly } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

let server: RedisServer;
let redis: Redis;
useRedis((started, client) => {
  server = started;
  redis = client;
});

let stop = (): void => undefined;
afterEach(() => stop());

function observed(): FloodgateEvent[] {
  const events: FloodgateEvent[] = [];
  stop = observe((event) => events.push(event));
  return events;
}

const trips = (events: readonly FloodgateEvent[]) => events.flatMap((event) => (event.type === "round-trip" ? [event] : []));

describe("observers hear of", () => {
  it("each command that was sent, with the number of decisions that it carried", async () => {
    const store = redisStore(redis, { denyCache: false });
    const limit = limitOf(yearly(1000));
    // The server then has the general script.
    await store.peek(limit, "k", patienceMs);
    const events = observed();
    const runs = await runsDuring(server, async () => {
      await Promise.all(Array.from({ length: 100 }, (_, i) => store.consume(limit, `k${i}`, 1, patienceMs)));
    });
    const heard = trips(events);
    expect(heard).toHaveLength(runs);
    expect(heard.length).toBeLessThan(10);
    expect(heard.every(({ ok, ms }) => ok && ms > 0)).toBe(true);
    expect(heard.reduce((sum, { steps }) => sum + steps, 0)).toBe(100);
  });

  it("each rejection that the deny cache answers", async () => {
    const store = redisStore(redis, { denyCache: { maxAgeMs: patienceMs } });
    const limit = limitOf(yearly(1));
    await store.consume(limit, "hot", 1, patienceMs);
    await store.consume(limit, "hot", 1, patienceMs);
    const events = observed();
    const checks = [{ limit, key: "hot", cost: 1 }];
    await store.consume(limit, "hot", 1, patienceMs);
    await store.consumeAll(checks, patienceMs);
    expect(events).toEqual(Array.from({ length: 2 }, () => ({ type: "deny-cache-hit", name: limit.name })));
  });

  it("a command that got no reply", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis(proxy.port, "127.0.0.1", { retryStrategy: () => null });
    client.on("error", () => undefined);
    const store = redisStore(client);
    const limit = limitOf(yearly(1000));
    await store.consume(limit, "k", 1, patienceMs);
    const events = observed();
    proxy.replies.mode = "hold";
    const { bytes } = proxy.replies;
    const asked = Promise.resolve(store.consume(limit, "k", 1, patienceMs)).catch((error) => error);
    await vi.waitUntil(() => proxy.replies.bytes > bytes, 10_000);
    proxy.stop();
    expect(await asked).toBeInstanceOf(Error);
    expect(trips(events).map(({ ok, steps }) => [ok, steps])).toEqual([[false, 1]]);
    client.disconnect();
  });
});
