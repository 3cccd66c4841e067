import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { App } from "./app.js";

const rules = `
rules:
  - { name: login, key: user, policy: { algorithm: fixed-window, limit: 1, window: 1s }, ban: { after: 5, within: 1m, for: 1h } }
  - { name: everyone, key: global, limit: 1000, window: 1h }
`;

let folder: string;
let server: RedisServer;
let apps: App[] = [];
let nowMs = Date.UTC(2026, 0, 1, 12);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "floodgate-rules-"));
  const file = join(folder, "limits.yaml");
  await writeFile(file, rules);
  server = await startRedis();
  const url = `redis://${server.host}:${server.port}`;
  apps = await Promise.all([App.start(file, url, "bans"), App.start(file, url, "bans")]);
  await pass(0);
});

afterAll(async () => {
  await Promise.all(apps.map((app) => app.stop()));
  await server?.stop();
  await rm(folder, { recursive: true });
});

async function pass(ms: number): Promise<void> {
  nowMs += ms;
  await Promise.all(apps.map((app) => app.setTime(nowMs)));
}

/** How many scripts Redis has run. */
async function scripts(): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await server.command("INFO", "commandstats")))?.[1]);
}

async function statuses(app: App, times: number): Promise<(number | string | undefined)[][]> {
  const all: (number | string | undefined)[][] = [];
  for (let i = 0; i < times; i++) {
    const { status, headers } = await app.send({ user: "mallory" });
    all.push(status === 200 ? [status] : [status, headers["retry-after"]]);
  }
  return all;
}

it("rejections from the deny cache count towards a ban, which holds in every process without asking Redis", async () => {
  const [here, there] = apps as [App, App];
  // After the first rejection this process rejects the key locally. The fifth rejection starts the ban.
  expect(await statuses(here, 6)).toEqual([[200], ...Array(4).fill([429, "1"]), [429, "3600"]]);
  await expect.poll(async () => (await there.peek("login", "mallory")).retryAfterMs).toBe(3_600_000);

  await pass(5_000);
  for (const app of apps) expect(await statuses(app, 1)).toEqual([[429, "3595"]]);
  const before = await scripts();
  for (const app of apps) expect(await statuses(app, 200)).toEqual(Array(200).fill([429, "3595"]));
  expect((await scripts()) - before).toBe(0);
  expect((await there.send({ user: "ann" })).status).toBe(200);
  expect(await here.peek("everyone", "global")).toMatchObject({ remaining: 998 });

  await pass(3_595_000 - 1);
  expect((await statuses(there, 1))[0]?.[0]).toBe(429);
  await pass(1);
  expect(await statuses(there, 2)).toEqual([[200], [429, "1"]]);
  expect(apps.flatMap(({ events }) => events)).toEqual([]);
});
