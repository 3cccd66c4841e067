import { MessageChannel } from "node:worker_threads";
import { concurrency, type Store } from "@floodgate/core";
import { createLimit, renewingStore } from "@floodgate/core/store";
import { afterAll, afterEach, beforeEach, expect, it, vi } from "vitest";
import { clusterStore } from "../../store-cluster/src/index.js";
import { databaseStore } from "../../store-database/src/index.js";
import { type AnyRedis, redisStore } from "../../store-redis/src/index.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const never = (): Promise<never> => new Promise(() => undefined);
const client = { status: "ready", connect: never, evalsha: never, eval: never, get: never };
const { port1, port2 } = new MessageChannel();
afterAll(() => port1.close());

/** Their servers never answer. */
const stores: Readonly<Record<string, Store>> = {
  redisStore: redisStore(client as unknown as AnyRedis),
  databaseStore: databaseStore({ load: never, swap: never }),
  clusterStore: clusterStore({ port: port2 }),
};

it.each(Object.keys(stores))("calls of a %s without `timeoutMs` fail after 100 ms, and not before", async (name) => {
  const store = stores[name] as Store;
  const limit = createLimit("direct", concurrency({ limit: 2, hold: "1m" }));
  const charge = { cost: 1, atMs: 0, state: undefined };
  const calls: (() => unknown)[] = [
    () => store.consume(limit, "key", 1),
    () => store.consumeAll([{ limit, key: "key", cost: 1 }]),
    () => store.peek(limit, "key"),
    () => store.settle(limit, "key", charge, 0),
    () => renewingStore(store).renew(limit, "key", charge),
    () => store.reset(limit, "key"),
    () => store.block("direct", "key", 1000, "block"),
    () => store.unblock("direct", "key"),
    () => store.keyState(limit, "key"),
  ];
  for (const [i, call] of calls.entries()) {
    let fault: unknown;
    Promise.resolve(call()).catch((error: unknown) => {
      fault = error;
    });
    await vi.advanceTimersByTimeAsync(99);
    expect(fault, String(i)).toBe(undefined);
    await vi.advanceTimersByTimeAsync(100);
    expect(fault, String(i)).toMatchObject({ code: "FLOODGATE_STORE_TIMEOUT", message: expect.stringContaining("100 ms") });
  }
});
