import { concurrency, createLimiter, type Decision, fixedWindow, type Limiter, limitFor, tokenBucket } from "@floodgate/core";
import { renewSlots } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import type { Redis, RedisOptions } from "ioredis";
import { createClient } from "redis";
import { afterEach, describe, expect, it } from "vitest";
import { redisStore } from "../src/index.js";
import { patienceMs } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

let redis: Redis;
useRedis((_, client) => {
  redis = client;
});

const policy = fixedWindow({ limit: 10, window: "365d" });
const sharedSecret = "a secret that all of these processes have";
const clients: Redis[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

/** A limiter on its own client, as in another process: it shares nothing with the other limiters of this test. */
function elsewhere(options: { name?: string; prefix?: string; receiptSecret?: string; client?: RedisOptions } = {}): Limiter<"async"> {
  const { name = "jobs", prefix = "floodgate", receiptSecret = sharedSecret } = options;
  const client = redis.duplicate(options.client);
  clients.push(client);
  const store = redisStore(client, { prefix });
  return createLimiter({ name, policy, store, timeoutMs: patienceMs, receiptSecret });
}

const invalid = expect.objectContaining({ code: "FLOODGATE_INVALID_RECEIPT" });
let keys = 0;
const freshKey = (): string => `key-${keys++}`;

describe("a receipt", () => {
  it("settles in another process, once over all processes", async () => {
    const [here, there, third] = [elsewhere(), elsewhere(), elsewhere()];
    const key = freshKey();
    const decision = await here.consume(key, { cost: 4 });
    const receipt = here.receipt(decision);
    const answers = await Promise.all([there.settle(key, receipt, 1), third.refund(key, receipt), there.refund(key, receipt)]);
    expect(answers.map((units) => Math.abs(units)).filter((units) => units > 0)).toHaveLength(1);
    expect(await here.refund(key, decision)).toBe(0);
    // Whichever came first counts: the settlement to 1, or a refund.
    expect((await here.peek(key)).remaining).toBe(answers[0] === 0 ? 10 : 9);
  });

  it("cannot be used after its decision was settled", async () => {
    const [here, there] = [elsewhere(), elsewhere()];
    const key = freshKey();
    const decision = await here.consume(key, { cost: 4 });
    const receipt = here.receipt(decision);
    expect([await here.settle(key, decision, 1), await there.refund(key, receipt)]).toEqual([-3, 0]);
    expect((await there.peek(key)).remaining).toBe(9);
  });

  it("is rejected for another key, limiter or prefix, and with another secret", async () => {
    const here = elsewhere();
    const key = freshKey();
    const receipt = here.receipt(await here.consume(key, { cost: 4 }));
    const others = [
      elsewhere({ name: "others" }),
      elsewhere({ prefix: "others" }),
      elsewhere({ receiptSecret: "another secret, of 32 characters or more" }),
    ];
    for (const other of others) expect(() => other.refund(key, receipt)).toThrow(invalid);
    expect(() => elsewhere().refund("another key", receipt)).toThrow(invalid);
    expect((await here.peek(key)).remaining).toBe(6);
  });

  it("is rejected where the client has another database or keyPrefix, so it is redeemed once a server", async () => {
    const here = elsewhere();
    const key = freshKey();
    const receipt = here.receipt(await here.consume(key, { cost: 4 }));
    const { port } = redis.options;
    const nodeRedis = (database: number, keyPrefix?: string): Limiter<"async"> => {
      const client = createClient({ url: `redis://127.0.0.1:${port}/${database}`, ...(keyPrefix && { keyPrefix }) });
      return createLimiter({ name: "jobs", policy, store: redisStore(client), receiptSecret: sharedSecret });
    };
    const others = [elsewhere({ client: { db: 1 } }), elsewhere({ client: { keyPrefix: "app:" } }), nodeRedis(1), nodeRedis(0, "app:")];
    for (const other of others) expect(() => other.settle(key, receipt, 9)).toThrow(invalid);
    // The same keys, whichever library and option writes them.
    expect(nodeRedis(0).store.dataId).toBe(here.store.dataId);
    const prefixed = elsewhere({ client: { keyPrefix: "app:" } });
    expect(nodeRedis(0, "app:").store.dataId).toBe(prefixed.store.dataId);
    const issued = prefixed.receipt(await prefixed.consume(key, { cost: 4 }));
    expect(await elsewhere({ prefix: "app:floodgate" }).settle(key, issued, 1)).toBe(-3);
  });

  it("refunds nothing after the key was reset, whatever was charged since", async () => {
    const [here, there] = [elsewhere(), elsewhere()];
    const key = freshKey();
    const receipt = here.receipt(await here.consume(key, { cost: 10 }));
    await here.reset(key);
    await here.consume(key, { cost: 10 });
    expect(await there.refund(key, receipt)).toBe(0);
    expect((await here.peek(key)).remaining).toBe(0);
  });

  it("leaves a mark in its key's slot that expires with the receipt", async () => {
    const here = elsewhere();
    const key = freshKey();
    const receipt = here.receipt(await here.consume(key));
    expect(await here.refund(key, receipt)).toBe(1);
    const [mark, ...others] = await redis.keys(`*{${key}}*receipt-*`);
    expect(others).toEqual([]);
    expect(await redis.pttl(mark as string)).toBeGreaterThan(365 * 86_400_000);
  });

  it("changes nothing after it has expired", async () => {
    let nowMs = 1_789_948_800_000;
    const tokens = createLimiter({
      name: "tokens",
      policy: fixedWindow({ limit: 10, window: "1d" }),
      store: redisStore(redis, { clock: () => nowMs, prefix: "clock" }),
      timeoutMs: patienceMs,
      receiptSecret: sharedSecret,
    });
    const bucket = createLimiter({
      name: "bucket",
      policy: tokenBucket({ capacity: 10, refill: 10, every: "1m" }),
      store: tokens.store,
      timeoutMs: patienceMs,
      receiptSecret: sharedSecret,
    });
    const [first, second] = [await bucket.consume("k"), await bucket.consume("k")].map((made) => bucket.receipt(made)) as [string, string];
    nowMs += 3_599_999;
    expect(await bucket.settle("k", first, 3)).toBe(2);
    nowMs += 1;
    expect(await bucket.settle("k", second, 3)).toBe(0);
  });

  it("finds its slot in another process, however often this one has renewed it, and a slot that was given back there is not renewed", async () => {
    const policy = concurrency({ limit: 1, hold: "1s" });
    const options = { name: "slots", policy, store: redisStore(redis), timeoutMs: patienceMs, receiptSecret: sharedSecret };
    const lost: boolean[] = [];
    const work = limitFor({
      ...options,
      key: () => "k",
      onEvent: (event) => event.type === "slot-lost" && lost.push(event.counted),
    });
    const client = redis.duplicate();
    clients.push(client);
    const there = createLimiter({ ...options, store: redisStore(client) });
    const { decision } = await work.check({});
    const receipt = work.limiter.receipt(decision as Decision);
    const heldUntil = async (): Promise<unknown> => (await there.keyState("k")).states[0]?.state;
    const first = await heldUntil();
    await expect.poll(heldUntil, { timeout: 20_000 }).not.toEqual(first);
    expect(await renewSlots(there, "k", receipt)).toBe(true);
    expect((await there.peek("k")).used).toBe(1);
    expect(await there.refund("k", receipt)).toBe(1);
    await expect.poll(() => lost, { timeout: 20_000 }).toEqual([false]);
    expect([(await there.peek("k")).used, await renewSlots(there, "k", receipt)]).toEqual([0, false]);
    work.close();
  });

  it("for a fallback's charge is valid only in its own process", async () => {
    const store = Object.assign(redisStore(redis), { consume: () => Promise.reject(new Error("away")) });
    const away = createLimiter({ name: "fallback", policy, store, onStoreError: memoryStore(), receiptSecret: sharedSecret });
    const decision: Decision = await away.consume("k", { cost: 4 });
    const receipt = away.receipt(decision);
    expect(decision.degraded).toBe(true);
    expect(receipt).toMatch(/^fr1\.l\./);
    expect(await away.refund("k", receipt)).toBe(4);
    expect(await away.refund("k", decision)).toBe(0);
  });
});
