import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { concurrency, createLimiter, type FloodgateEvent, observe } from "@floodgate/core";
import type { RedisServer } from "@floodgate/test-servers";
import type { Redis } from "ioredis";
import { afterEach, expect, it, vi } from "vitest";
import { redisStore } from "../src/index.js";
import { useRedis } from "./use-redis.js";

vi.setConfig({ testTimeout: 600_000 });

let server: RedisServer;
let redis: Redis;
useRedis((started, connected) => {
  server = started;
  redis = connected;
});

const workers = new Set<ChildProcess>();
afterEach(() => {
  for (const worker of workers) worker.kill("SIGKILL");
  workers.clear();
});

function start(name: string, limit: number, hold: string, runs: number): ChildProcess {
  const args = [name, String(server.port), String(limit), hold, String(runs)];
  const worker = fork(join(__dirname, "slots-worker.mjs"), args, { execArgv: [] });
  workers.add(worker);
  return worker;
}

/** Kills processes, and waits until Redis has run what they had sent: a later command finds nothing of theirs on its way. */
async function kill(...killed: ChildProcess[]): Promise<void> {
  const names = killed.map(({ spawnargs }) => `name=process-${spawnargs[2]} `);
  expect(killed.map(({ exitCode }) => exitCode)).toEqual(killed.map(() => null));
  for (const worker of killed) worker.kill("SIGKILL");
  const connections = async (): Promise<unknown> => redis.client("LIST");
  await expect.poll(connections, { timeout: 10_000 }).not.toSatisfy((list: string) => names.some((name) => list.includes(name)));
}

const most = async (): Promise<number> => Number(await redis.get("most"));

async function untilMost(limit: number): Promise<number> {
  const fromMs = Date.now();
  await expect.poll(most, { interval: 10, timeout: 30_000 }).toBeGreaterThanOrEqual(limit);
  return Date.now() - fromMs;
}

it("processes never run more at once than the limit, and reach it", async () => {
  await redis.flushall();
  const [processes, runs, limit] = [8, 2000, 10];
  const all = Array.from({ length: processes }, (_, i) => start(`${i}`, limit, "30s", runs));
  expect(await Promise.all(all.map(async (worker) => (await once(worker, "exit"))[0]))).toEqual(Array(processes).fill(0));
  expect(await most()).toBe(limit);
});

it("processes that are killed in mid-work: never more than the limit, and their slots are back within the hold and a second", async () => {
  for (let run = 0; run < 24; run++) {
    await redis.flushall();
    const victim = start("victim", 3, "1s", 0);
    const others = ["one", "two"].map((name) => start(name, 3, "1s", 0));
    await untilMost(3);
    await wait(20 * run);
    await kill(victim);
    // Its work has stopped, and its slots are still taken.
    await redis.hdel("running", "victim");
    await redis.del("most");
    expect(await untilMost(3)).toBeLessThan(2000);
    await wait(100);
    expect(await most()).toBe(3);
    await kill(...others);
  }
});

it("one process keeps 10,000 slots of 100 keys in flight, renews them in batches, and loses none", async () => {
  await redis.flushall();
  const lost: FloodgateEvent[] = [];
  const onEvent = (event: FloodgateEvent): unknown => event.type === "slot-lost" && lost.push(event);
  const [keys, slots, holdMs] = [100, 10_000, 15_000];
  const policy = concurrency({ limit: slots / keys, hold: "15s" });
  const store = redisStore(redis, { prefix: "many" });
  const limiter = createLimiter({ name: "jobs", policy, store, timeoutMs: 60_000, onStoreError: "deny", onEvent });
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const key = (i: number): string => `key-${i % keys}`;
  const running = Array.from({ length: slots }, (_, i) => limiter.run(key(i), () => ended));
  const used = async (): Promise<number[]> => Promise.all(Array.from({ length: keys }, async (_, i) => (await limiter.peek(key(i))).used));
  await expect.poll(used, { interval: 100, timeout: 60_000 }).toEqual(Array(keys).fill(slots / keys));

  let [commands, renewed] = [0, 0];
  const stop = observe((event: FloodgateEvent) => {
    if (event.type !== "round-trip") return;
    commands++;
    renewed += event.steps;
  });
  await wait(2 * holdMs);
  stop();
  // A full command renews 64. The last ones of each turn are smaller.
  expect(renewed / commands).toBeGreaterThan(50);
  expect(await used()).toEqual(Array(keys).fill(slots / keys));
  end();
  expect((await Promise.all(running)).every(({ allowed }) => allowed)).toBe(true);
  expect(await used()).toEqual(Array(keys).fill(0));
  expect(lost).toEqual([]);
});
