import { fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { type RedisSentinel, startSentinel } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { createSentinel } from "redis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { redisStore } from "../src/index.js";
import { runsOf } from "./commands.js";
import type { Connected } from "./libraries.js";

// A machine that is busy with other tests may take its time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 5000;
const soon = { interval: 5, timeout: 30_000 };

let group: RedisSentinel;
beforeAll(async () => {
  // One that is promoted and killed in turn for each library.
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
  it("is followed when it dies: a replica takes over, is sent the script and goes on with what was counted", async () => {
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
    // Until the library has noticed, decisions may fail: they are counted nowhere.
    await expect.poll(() => store.consume(limit, "k", 1, timeoutMs).then(({ remaining }) => remaining, String), soon).toBe(97);
    expect(await runsOf(promoted)).toBeGreaterThan(before);
    expect((await store.peek(limit, "k", timeoutMs)).remaining).toBe(97);
    await connected.close();
  });
});
