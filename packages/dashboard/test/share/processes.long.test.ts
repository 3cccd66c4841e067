import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type Counts, type History, type KeyAnswer, type LiveFigures, type Overview, wholeRequests } from "../../src/contract.js";
import { ask, openEvents } from "../adapters/http.js";

// Three real processes behind one Redis: two with ioredis, one with node-redis.

const children: ChildProcess[] = [];
const ports: number[] = [];
let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
  for (const library of ["ioredis", "ioredis", "redis"]) {
    children.push(fork(join(__dirname, "app.mjs"), [String(redis.port), library], { execArgv: [] }));
  }
  for (const child of children) ports.push((await once(child, "message"))[0] as number);
}, 60_000);

afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await redis?.stop();
});

const patient = { timeout: 20_000, interval: 200 };

async function send(app: number, user: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await ask(ports[app] as number, "/", { headers: { "x-user": user } });
}

async function get<T>(app: number, path: string): Promise<T> {
  return JSON.parse((await ask(ports[app] as number, `/f/data/${path}`)).text);
}

const totalsOf = ({ totals }: Overview): Counts | undefined => totals.find(({ rule }) => rule === "web")?.counts;

const plus = (a: number, b: number): number => a + b;

const sum = (counts: readonly number[] = []): number => counts.reduce(plus, 0);

/** What was allowed and limited in the last minute. */
function countsOf({ minute }: LiveFigures): number[] {
  const { allowed, limited } = minute.rules.find(({ rule }) => rule === "web")?.series ?? {};
  return [sum(allowed), sum(limited)];
}

it("shows the sum of all processes in each of them, until they are gone", async () => {
  await send(0, "alice@example", 5);
  await send(1, "alice@example", 2);
  await send(2, "alice@example", 4);
  await send(2, "bernd@example", 1);

  for (const app of [0, 1, 2]) {
    await vi.waitFor(async () => {
      const overview = await get<Overview>(app, "overview");
      expect(overview.scope).toMatchObject({ kind: "all" });
      expect(overview.instances).toHaveLength(3);
      expect(overview.instances.filter(({ self }) => self)).toHaveLength(1);
      expect(totalsOf(overview)).toEqual({ allowed: 9, limited: 3 });
      expect(overview.top.byRequests.keys).toMatchObject([
        { key: "al…le", count: 11, error: 0 },
        { key: "be…le", count: 1 },
      ]);
      expect(overview.top.byRejections.keys).toMatchObject([{ key: "al…le", count: 3, error: 0 }]);
      expect(overview.stores).toMatchObject([{ kind: "memory", rules: ["web"], size: 4 }]);
      const { rules, points } = await get<History>(app, "history?range=minute");
      expect([points, sum(rules[0]?.series.allowed), sum(rules[0]?.series.limited), rules[0]?.rule]).toEqual([60, 9, 3, wholeRequests]);
    }, patient);
  }

  // An id that one process gave is known to the others.
  const overview = await get<Overview>(0, "overview");
  const { id } = overview.top.byRequests.keys.find(({ key }) => key === "be…le") as { id: string };
  await get<Overview>(1, "overview");
  const headers = { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin" };
  const found = await ask(ports[1] as number, "/f/data/key", { method: "POST", headers, body: JSON.stringify({ id }) });
  expect(JSON.parse(found.text) as KeyAnswer).toMatchObject({ key: "be…le", states: [{ rule: "web", shared: false }] });

  // A stream of one process tells what the others count.
  const stream = await openEvents(ports[0] as number, "/f/data/live");
  const before = countsOf((await stream.next()) as LiveFigures);
  await send(1, "carla@example", 2);
  await send(2, "carla@example", 5);
  let counted = before;
  while (counted.reduce(plus) < before.reduce(plus) + 7) counted = countsOf((await stream.next()) as LiveFigures);
  stream.close();
  expect(counted.map((count, i) => count - (before[i] as number))).toEqual([5, 2]);

  // One ends well, the other does not.
  children[1]?.send("close");
  children[2]?.kill("SIGKILL");
  await vi.waitFor(async () => {
    const alone = await get<Overview>(0, "overview");
    expect(alone.instances).toMatchObject([{ self: true }]);
    expect(alone.scope.kind).toBe("all");
    expect(totalsOf(alone)).toEqual({ allowed: 3, limited: 2 });
  }, patient);
  // Every key in Redis expires.
  for (const key of (await redis.command("KEYS", "*")) as string[]) expect([key, await redis.command("PTTL", key)]).not.toEqual([key, -1]);

  // Without Redis, a dashboard shows its own process and says so.
  redis.pause();
  await vi.waitFor(async () => {
    const alone = await get<Overview>(0, "overview");
    expect(alone.scope).toMatchObject({ kind: "process", trouble: expect.stringContaining("did not answer within 1000 ms") });
    expect(totalsOf(alone)).toEqual({ allowed: 3, limited: 2 });
  }, patient);
  expect((await ask(ports[0] as number, "/", { headers: { "x-user": "daria" } })).text).toBe("hello");
  redis.resume();
  await vi.waitFor(async () => expect((await get<Overview>(0, "overview")).scope.kind).toBe("all"), patient);
}, 90_000);
