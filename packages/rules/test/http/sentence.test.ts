import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { allRuns } from "../../../../test/runs.js";
import { pushRules } from "../../src/index.js";
import { App, type Asked } from "./app.js";

const limits = join(__dirname, "../../../../examples/rules/limits.yaml");
const dayMs = 86_400_000;

let server: RedisServer;
let apps: App[] = [];
let nowMs = Date.UTC(2026, 0, 1, 12);
let sent = 0;

beforeAll(async () => {
  server = await startRedis();
  const url = `redis://${server.host}:${server.port}`;
  const redis = new Redis(url);
  await pushRules(redis, "sentence:rules", await readFile(limits, "utf8"));
  redis.disconnect();
  apps = await Promise.all([App.start(url, url, "sentence"), App.start(url, url, "sentence")]);
});

afterAll(async () => {
  await Promise.all(apps.map((app) => app.stop()));
  await server?.stop();
});

/** Both processes share one clock, which stands still until a test advances it. Each test starts two days later. */
async function pass(ms: number): Promise<void> {
  nowMs += ms;
  await Promise.all(apps.map((app) => app.setTime(nowMs)));
}

beforeEach(() => pass(2 * dayMs));

/** The status of a request, sent to the processes in turn. */
async function status(asked: Asked): Promise<number> {
  const app = apps[sent++ % apps.length] as App;
  return (await app.send(asked)).status;
}

async function statuses(times: number, asked: (i: number) => Asked): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < times; i++) all.push(await status(asked(i)));
  return all;
}

/** The statuses of requests that pass, then of those that are rejected. */
const passing = (pass: number, reject: number): number[] => [...Array(pass).fill(200), ...Array(reject).fill(429)];

/** Changes the address often enough that only the tested limit rejects. */
const ipOf = (i: number): string => `198.51.100.${Math.floor(i / 50)}`;

describe("1 post a second, 150 friends a day and 5 likes a second for each user, 100 requests a minute for each IP, 10,000 a second for everyone, in two processes", () => {
  it("1 post a second for each user", async () => {
    const post = (user: string): Asked => ({ method: "POST", path: "/posts", user });
    expect(await statuses(3, () => post("ann"))).toEqual(passing(1, 2));
    expect(await status(post("bob"))).toBe(200);
    await pass(999);
    expect(await status(post("ann"))).toBe(429);
    await pass(1);
    expect(await statuses(2, () => post("ann"))).toEqual(passing(1, 1));
  });

  it("150 friends a day for each user, for any path and any address", async () => {
    const befriend = (i: number): Asked => ({ method: "POST", path: `/users/${i}/friends`, user: "ann", ip: ipOf(i) });
    expect(await statuses(153, befriend)).toEqual(passing(150, 3));
    expect(await status({ ...befriend(1), user: "bob" })).toBe(200);
    await pass(dayMs - 1);
    expect(await status(befriend(200))).toBe(429);
    await pass(1);
    expect(await status(befriend(201))).toBe(200);
  });

  it("5 likes a second for each user", async () => {
    const like = (i: number): Asked => ({ method: "POST", path: `/posts/${i}/likes`, user: "ann" });
    expect(await statuses(7, like)).toEqual(passing(5, 2));
    await pass(200);
    expect(await statuses(2, like)).toEqual(passing(1, 1));
    await pass(1000);
    expect(await statuses(6, like)).toEqual(passing(5, 1));
  });

  it("100 requests a minute for each IP, for any user and any path", async () => {
    const visit = (i: number): Asked => ({ path: `/page/${i}`, user: `user-${i}`, ip: "203.0.113.7" });
    expect(await statuses(102, visit)).toEqual(passing(100, 2));
    expect(await status({ ip: "203.0.113.8" })).toBe(200);
    await pass(60_000);
    expect(await status(visit(0))).toBe(200);
  });

  it("10,000 a second for everyone", { timeout: 120_000 }, async () => {
    // `npm run test:long` sends them all.
    const requests = allRuns ? 10_000 : 100;
    if (requests < 10_000) await apps[0]?.consume("everyone", "global", 10_000 - requests);
    const asked = Array.from({ length: requests + 50 }, (_, i): Asked => ({ ip: `10.0.${i >> 8}.${i & 255}` }));
    const counts: Record<number, number> = {};
    let next = 0;
    const client = async (): Promise<void> => {
      for (let request = asked[next++]; request !== undefined; request = asked[next++]) {
        const answered = await status(request);
        counts[answered] = (counts[answered] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: 80 }, client));
    expect(counts).toEqual({ 200: requests, 429: 50 });
    await pass(1);
    expect(await statuses(11, (i) => ({ ip: `10.1.0.${i}` }))).toEqual(passing(10, 1));
  });

  it("a plan has other limits, and usage carries over when the plan changes", async () => {
    const post = { method: "POST", path: "/posts", user: "ann" };
    expect(await statuses(6, () => ({ ...post, plan: "pro" }))).toEqual(passing(5, 1));
    expect(await status(post)).toBe(429);
    const like = (i: number): Asked => ({ method: "POST", path: `/posts/${i}/likes`, user: "bob", plan: "pro" });
    expect(await statuses(22, like)).toEqual(passing(20, 2));
    const befriend = (i: number): Asked => ({ method: "POST", path: `/users/${i}/friends`, user: "cleo", plan: "pro" });
    expect(await statuses(160, befriend)).toEqual(passing(160, 0));
  });

  it("a request that one limit rejects charges none of the others", async () => {
    const ip = "203.0.113.9";
    expect(await statuses(4, () => ({ method: "POST", path: "/posts", user: "ann", ip }))).toEqual(passing(1, 3));
    for (const app of apps) {
      expect(await app.peek("per-ip", ip)).toMatchObject({ remaining: 99 });
      expect(await app.peek("everyone", "global")).toMatchObject({ remaining: 9999 });
    }
  });

  it("Redis made all decisions", () => {
    expect(apps.flatMap(({ events }) => events)).toEqual([]);
  });
});
