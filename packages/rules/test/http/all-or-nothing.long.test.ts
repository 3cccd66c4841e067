import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { App } from "./app.js";

const rules = `
rules:
  - { name: wide, key: global, policy: { algorithm: token-bucket, capacity: 1000, refill: 1, every: 1h } }
  - { name: strict, key: session, policy: { algorithm: sliding-window-log, limit: 10, window: 1h } }
  - { name: queue, key: ip, policy: { algorithm: gcra, limit: 500, window: 365d } }
`;

let folder: string;
let server: RedisServer;
let apps: App[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "floodgate-rules-"));
  await writeFile(join(folder, "limits.yaml"), rules);
  server = await startRedis();
});

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.stop()));
});

afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true });
});

describe("a request that one rule rejects charges no other rule, even with many requests at once", () => {
  it.each([
    ["in memory", 1],
    ["in Redis, to two processes", 2],
  ])("%s", async (_, processes) => {
    const countsAt = processes === 1 ? "memory" : `redis://${server.host}:${server.port}`;
    const start = (): Promise<App> => App.start(join(folder, "limits.yaml"), countsAt, "whole");
    apps = await Promise.all(Array.from({ length: processes }, start));
    const users = ["ann", "bob", "cleo"];
    const answers = await Promise.all(
      Array.from({ length: 600 }, (_, i) => (apps[i % processes] as App).send({ user: users[i % users.length] as string })),
    );
    const passed = answers.filter(({ status }) => status === 200).length;
    expect(passed).toBe(30);
    for (const app of apps) {
      expect(await app.peek("wide", "global")).toMatchObject({ remaining: 970 });
      expect(await app.peek("queue", "192.0.2.1")).toMatchObject({ remaining: 470 });
      for (const user of users) expect(await app.peek("strict", user)).toMatchObject({ remaining: 0 });
      expect(app.events).toEqual([]);
    }
  });
});
