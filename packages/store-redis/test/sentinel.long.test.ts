import { fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { type RedisSentinel, startSentinel } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { createSentinel } from "redis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { redisStore } from "../src/index.js";
import { runsOf } from "./commands.js";
import type { Connected } from "./libraries.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 5000;
const soon = { interval: 5, timeout: 30_000 };

let group: RedisSentinel;
beforeAll(async () => {
  // One replica per library: each test promotes and then kills one.
  group = await startSentinel({ replicas: 2 });
});
afterAll(() => group?.stop());

async function ioredis(): Promise<Connected> {
  const client = new Redis({ sentinels: [group.sentinel], name: group.name });
  client.on("error", () => undefined);
  return { client, close: () => client.quit() };
}

async function nodeRedis(): Promise<Connected> {
  const client = createSentinel({ name: group.name, sentinelRootNodes: [group.sentinel] });
  client.on("error", () => undefined);
  await client.connect();
  return { client, close: () => client.close() };
}

describe.each([
  ["ioredis", ioredis],
  ["node-redis", nodeRedis],
] as const)("a master that %s finds through Sentinels", (library, connect) => {
  it("can die: the promoted replica gets the script and keeps the counts", async () => {
    const connected = await connect();
    const store = redisStore(connected.client);
    const limit = createLimit(library, fixedWindow({ limit: 100, window: "365d" }));
    for (const remaining of [99, 98]) expect((await store.consume(limit, "k", 1, timeoutMs)).remaining).toBe(remaining);
    const master = await group.master();
    const [name] = (await master.command("KEYS", `*${library}*`)) as [string];
    const states = () => Promise.all(group.nodes.filter(({ running }) => running).map((node) => node.command("GET", name)));
    await expect.poll(async () => new Set(await states()).size, soon).toBe(1);
    await master.kill();
    await group.healthy();
    const promoted = await group.master();
    await promoted.command("SCRIPT", "FLUSH");
    const before = await runsOf(promoted);
    // Decisions may fail until the library has noticed. Those are not counted.
    await expect
      .poll(() => Promise.resolve(store.consume(limit, "k", 1, timeoutMs)).then(({ remaining }) => remaining, String), soon)
      .toBe(97);
    expect(await runsOf(promoted)).toBeGreaterThan(before);
    expect((await store.peek(limit, "k", timeoutMs)).remaining).toBe(97);
    await connected.close();
  });
});
