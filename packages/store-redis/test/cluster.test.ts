import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Decision, fixedWindow, type Store } from "@floodgate/core";
import { type Check, createLimit, type Limit } from "@floodgate/core/store";
import { type RedisCluster, type RedisServer, startCluster } from "@floodgate/test-servers";
import calculateSlot from "cluster-key-slot";
import * as fc from "fast-check";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { allRuns } from "../../../test/runs.js";
import type { AnyRedis } from "../src/clients/index.js";
import { slotOf as slotOfStore } from "../src/clients/slot.js";
import { redisStore } from "../src/index.js";
import { runsOf } from "./commands.js";
import { type Connected, libraries } from "./libraries.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 20_000;
const soon = { interval: 5, timeout: timeoutMs };

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster?.stop());

let names = 0;
const limitOf = (limit: number): Limit => createLimit(`limit-${names++}`, fixedWindow({ limit, window: "365d" }));

/** The slot of a request key. A limit's name is outside of the braces, so it does not matter. */
const slotOf = (key: string): number => calculateSlot(`{${key}}`);

/** `count` keys in different slots of one node. */
async function keysOn(node: RedisServer, count: number): Promise<string[]> {
  const keys = new Map<number, string>();
  while (keys.size < count) {
    const key = `key-${names++}`;
    if ((await cluster.masterOf(slotOf(key))) === node) keys.set(slotOf(key), key);
  }
  return [...keys.values()];
}

const fiveOf = (key: string): Check[] => Array.from({ length: 5 }, () => ({ limit: limitOf(10), key, cost: 1 }));

/** The number of script runs on each master during `act`, highest first. */
async function runsDuring(act: () => Promise<unknown>): Promise<number[]> {
  const masters = cluster.nodes.slice(0, 3);
  const before = await Promise.all(masters.map(runsOf));
  await act();
  const after = await Promise.all(masters.map(runsOf));
  return after.map((runs, i) => runs - (before[i] as number)).sort((a, b) => b - a);
}

describe.each(["ioredis 6", "redis 6"] as const)("on a Cluster with %s", (library) => {
  let connected: Connected;
  let store: Store<"async">;
  /** A key on each master. */
  let keys: [string, string, string];
  const used = async (limit: Limit, key: string): Promise<number> =>
    limit.policy.quota - (await store.peek(limit, key, timeoutMs)).remaining;

  beforeAll(async () => {
    connected = await libraries[library].connectCluster(cluster.nodes.map(({ port }) => port));
    store = redisStore(connected.client);
    const masters = cluster.nodes.slice(0, 3);
    keys = (await Promise.all(masters.map(async (node) => (await keysOn(node, 1))[0]))) as typeof keys;
    // The first round lets the library learn the nodes, the second lets the store learn each node's clock, and the others load scripts.
    for (const key of [...keys, ...keys]) await store.consume(limitOf(1), key, 1, timeoutMs);
    for (const key of keys) await store.peek(limitOf(1), key, timeoutMs);
    for (const key of keys) for (const quota of [1, 10, 100]) await store.consumeAll([{ limit: limitOf(quota), key, cost: 1 }], timeoutMs);
    await store.consumeAll(fiveOf(keys[0]), timeoutMs);
  });
  afterAll(() => connected?.close());

  it("limits that share a key take one run on one node", async () => {
    expect(await runsDuring(async () => store.consumeAll(fiveOf(keys[0]), timeoutMs))).toEqual([1, 0, 0]);
  });

  it("limits with different keys take one run per slot, and one refund per charged slot if another rejects", async () => {
    const [narrow, wide, widest] = [limitOf(1), limitOf(10), limitOf(100)];
    const checks: Check[] = [
      { limit: wide, key: keys[0], cost: 2 },
      { limit: narrow, key: keys[1], cost: 1 },
      { limit: widest, key: keys[2], cost: 3 },
    ];
    let answers: Decision[] = [];
    const ask = () =>
      runsDuring(async () => {
        answers = await store.consumeAll(checks, timeoutMs);
      });
    expect(await ask()).toEqual([1, 1, 1]);
    expect(answers.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 8],
      [true, 0],
      [true, 97],
    ]);
    expect(await ask()).toEqual([2, 2, 1]);
    expect(answers.map(({ allowed, remaining, retryAfterMs }) => [allowed, remaining, retryAfterMs > 0])).toEqual([
      [true, 8, false],
      [false, 0, true],
      [true, 97, false],
    ]);
    expect([await used(wide, keys[0]), await used(narrow, keys[1]), await used(widest, keys[2])]).toEqual([2, 1, 3]);
  });

  it.each([9, 5])(
    "limits in several slots are never exceeded, and rejected requests are refunded (60 in all, %i each)",
    async (eachLimit) => {
      const [global, each] = [limitOf(60), limitOf(eachLimit)];
      const users = Array.from({ length: 10 }, (_, i) => `user-${i}`);
      const requests = Array.from({ length: 300 }, (_, i) => users[i % users.length] as string);
      const answers = await Promise.all(
        requests.map(async (user, i) => {
          await sleep(i % 17);
          const checks = [
            { limit: global, key: "global", cost: 1 },
            { limit: each, key: user, cost: 1 },
          ];
          const decisions = await store.consumeAll(checks, timeoutMs);
          return decisions.every(({ allowed }) => allowed) ? user : undefined;
        }),
      );
      const passed = answers.filter((user) => user !== undefined);
      expect(passed.length).toBeLessThanOrEqual(60);
      expect(passed.length).toBeGreaterThan(0);
      expect(await used(global, "global")).toBe(passed.length);
      for (const user of users) expect(await used(each, user)).toBe(passed.filter((other) => other === user).length);
      expect(Math.max(...(await Promise.all(users.map((user) => used(each, user)))))).toBeLessThanOrEqual(eachLimit);
      for (let i = passed.length; i < 60; i++) expect((await store.consume(global, "global", 1, timeoutMs)).allowed).toBe(true);
    },
  );

  it("a request during another's unrefunded charge is rejected, and the next one passes", async () => {
    const [free, full] = [limitOf(1), limitOf(1)];
    await store.consume(full, keys[1], 1, timeoutMs);
    const whole: Check[] = [
      { limit: free, key: keys[0], cost: 1 },
      { limit: full, key: keys[1], cost: 1 },
    ];
    const [decisions, alone] = await Promise.all([store.consumeAll(whole, timeoutMs), store.consume(free, keys[0], 1, timeoutMs)]);
    expect([...decisions, alone].map(({ allowed }) => allowed)).toEqual([true, false, false]);
    expect((await store.consume(free, keys[0], 1, timeoutMs)).allowed).toBe(true);
  });

  it("charges are refunded if another slot fails", async () => {
    const [sound, foreign] = [limitOf(10), limitOf(10)];
    const node = await cluster.masterOf(slotOf(keys[1]));
    await store.consume(foreign, keys[1], 1, timeoutMs);
    const [name] = (await node.command("KEYS", `*{${keys[1]}}:${foreign.name}:*`)) as [string];
    await node.command("DEL", name);
    await node.command("LPUSH", name, "foreign");
    const whole: Check[] = [
      { limit: sound, key: keys[0], cost: 3 },
      { limit: foreign, key: keys[1], cost: 1 },
    ];
    await expect(store.consumeAll(whole, timeoutMs)).rejects.toMatchObject({ code: "FLOODGATE_FOREIGN_VALUE" });
    expect(await used(sound, keys[0])).toBe(0);
  });

  it("a decision whose held units were given back holds nothing", async () => {
    const policy = fixedWindow({ limit: 1, window: "365d" });
    const held = [0, 1].map(() => createLimiter({ name: `limit-${names++}`, policy, store, hold: "1h" }).limit) as [Limit, Limit];
    await store.consume(held[1], keys[1], 1, timeoutMs);
    const checks = keys.slice(0, 2).map((key, i) => ({ limit: held[i] as Limit, key, cost: 1 }));
    expect(await store.consumeAll(checks, timeoutMs)).toMatchObject([
      { allowed: true, remaining: 1, heldUntilMs: undefined },
      { allowed: false, heldUntilMs: undefined },
    ]);
    expect(await used(held[0], keys[0])).toBe(0);
  });

  it.each<[string, Partial<Check>]>([
    ["dry-run limit", { cost: 2, dryRun: true }],
    ["shadow limit that would reject", { cost: 7, shadow: true }],
  ])("a %s was not charged, and gets no refund when another rejects", async (_, check) => {
    const [looked, full] = [limitOf(10), limitOf(1)];
    await store.consume(looked, keys[0], 4, timeoutMs);
    await store.consume(full, keys[1], 1, timeoutMs);
    const whole: Check[] = [
      { limit: looked, key: keys[0], cost: 1, ...check },
      { limit: full, key: keys[1], cost: 1 },
    ];
    expect(await store.consumeAll(whole, timeoutMs)).toMatchObject([{ allowed: check.dryRun === true }, { allowed: false }]);
    expect(await used(looked, keys[0])).toBe(4);
  });

  it("decisions for one node are sent in one pipeline", async () => {
    const node = cluster.nodes[0] as RedisServer;
    const reads = async (): Promise<number> => Number((await node.info("stats"))["total_reads_processed"]);
    const many = await keysOn(node, 60);
    const limit = limitOf(10);
    const before = await reads();
    const runs = await runsDuring(() => Promise.all(many.map((key) => store.consume(limit, key, 1, timeoutMs))));
    expect(runs).toEqual([many.length, 0, 0]);
    // Two rounds; the replica's and this test's own reads count too.
    expect((await reads()) - before).toBeLessThan(20);
  });

  it("a slot that moves to another node keeps its counts", async () => {
    const [key] = keys;
    const slot = slotOf(key);
    const limits = [limitOf(10), limitOf(10), limitOf(10)] as const;
    const [stays, moves] = limits;
    for (const limit of [stays, moves]) await store.consume(limit, key, 1, timeoutMs);
    const [from, to] = [await cluster.masterOf(slot), await cluster.masterOf((slot + 8192) % 16_384)];
    const [fromId, toId] = await Promise.all([from, to].map(async (node) => String(await node.command("CLUSTER", "MYID"))));
    await to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", fromId as string);
    await from.command("CLUSTER", "SETSLOT", slot, "MIGRATING", toId as string);
    const [name] = (await from.command("KEYS", `*{${key}}:${moves.name}:*`)) as [string];
    await from.command("MIGRATE", to.host, to.port, name, 0, 5000);
    const ask = async () => {
      const remaining: number[] = [];
      for (const limit of limits) remaining.push((await store.consume(limit, key, 1, timeoutMs)).remaining);
      return remaining;
    };
    // During the move: moved keys and new keys are on the target node.
    expect(await ask()).toEqual([8, 8, 9]);
    // Keys of both nodes in one step: the server says TRYAGAIN until all have moved.
    const together = store.consumeAll(
      [stays, moves].map((limit): Check => ({ limit, key, cost: 1 })),
      timeoutMs,
    );
    await sleep(20);
    for (const rest of (await from.command("KEYS", `*{${key}}*`)) as string[]) {
      await from.command("MIGRATE", to.host, to.port, rest, 0, 5000);
    }
    for (const node of [to, from]) await node.command("CLUSTER", "SETSLOT", slot, "NODE", toId as string);
    await cluster.healthy();
    expect(await together).toMatchObject([{ remaining: 7 }, { remaining: 7 }]);
    expect(await ask()).toEqual([6, 6, 8]);
    const checks = limits.map((limit): Check => ({ limit, key, cost: 1 }));
    expect(await store.consumeAll(checks, timeoutMs)).toMatchObject([{ remaining: 5 }, { remaining: 5 }, { remaining: 7 }]);
  });
});

it("a key has the slot that the server computes", async () => {
  // As clients send it: the store escapes halves of surrogate pairs.
  const part = fc.oneof(fc.constantFrom("{", "}", "{}", "{}}", "{a}", "\0", "\r\n", "\u{1f600}"), fc.string({ unit: "grapheme" }));
  const keys = fc.sample(
    fc.array(part, { maxLength: 6 }).map((parts) => Buffer.from(parts.join("")).toString()),
    2000,
  );
  const node = cluster.nodes[0] as RedisServer;
  const ofServer = await Promise.all(keys.map(async (key) => [key, await node.command("CLUSTER", "KEYSLOT", key)]));
  expect(keys.map((key) => [key, slotOfStore(key)])).toEqual(ofServer);
});

const ioredisWith = (options: { keyPrefix?: string; redisOptions?: { keyPrefix: string } }): AnyRedis => {
  const client = new Cluster(
    cluster.nodes.map(({ host, port }) => ({ host, port })),
    options,
  );
  onTestFinished(() => client.disconnect());
  return client;
};

it.each<[string, () => AnyRedis | Promise<AnyRedis>]>([
  ["the Cluster", () => ioredisWith({ keyPrefix: "app:" })],
  ["its nodes", () => ioredisWith({ redisOptions: { keyPrefix: "app:" } })],
  [
    "node-redis",
    async () => {
      const rootNodes = cluster.nodes.map(({ host, port }) => ({ url: `redis://${host}:${port}` }));
      const client = await createCluster({ rootNodes, keyPrefix: "app:" }).connect();
      onTestFinished(() => client.destroy());
      return client;
    },
  ],
])("requests under several limits have the prefix of %s", async (_, connected) => {
  const client = await connected();
  const checks = [limitOf(1), limitOf(2)].map((limit): Check => ({ limit, key: "prefixed", cost: 1 }));
  const ask = async () => (await redisStore(client).consumeAll(checks, timeoutMs)).map(({ allowed }) => allowed);
  expect(await ask()).toEqual([true, true]);
  expect(await ask()).toEqual([false, true]);
  const names = (await Promise.all(cluster.nodes.slice(0, 3).map((node) => node.command("KEYS", "*{prefixed}*")))).flat().map(String);
  expect(names.every((name) => name.startsWith("app:floodgate:"))).toBe(true);
  for (const { limit } of checks) expect(names.filter((name) => name.includes(`:${limit.name}:`))).toHaveLength(1);
});

/** The library matters little to a failover, which takes seconds. */
const failingOver = (
  [
    ["ioredis 6", 0],
    ["redis 6", 8000],
  ] as const
).slice(0, allRuns ? 2 : 1);

describe.each(failingOver)("when a master goes under load, with %s", (library, someSlot) => {
  let connected: Connected;
  let store: Store<"async">;
  beforeEach(async () => {
    connected = await libraries[library].connectCluster(cluster.nodes.filter(({ running }) => running).map(({ port }) => port));
    store = redisStore(connected.client);
  });
  afterEach(() => connected?.close());

  /** Sends requests continuously until it is stopped, and counts the outcomes. */
  class Load {
    decided = 0;
    failed = 0;
    #over = false;
    readonly #asked: Promise<unknown>;

    constructor(limit: Limit, key: string) {
      this.#asked = Promise.all(Array.from({ length: 20 }, () => this.#ask(limit, key)));
    }

    async stop(): Promise<void> {
      this.#over = true;
      await this.#asked;
    }

    async #ask(limit: Limit, key: string): Promise<void> {
      while (!this.#over) {
        try {
          await store.consume(limit, key, 1, 300);
          this.decided++;
        } catch {
          this.failed++;
          await new Promise(setImmediate);
        }
      }
    }
  }

  it.each<[string, (slot: number) => Promise<unknown>]>([
    ["told to hand over", (slot) => cluster.failover(slot)],
    [
      "killed",
      async (slot) => {
        await (await cluster.masterOf(slot)).kill();
        await cluster.healthy();
      },
    ],
  ])("its replica goes on with what was counted, and nothing is counted twice: %s", async (how, failover) => {
    const limit = limitOf(1_000_000);
    const key = (await keysOn(await cluster.masterOf(someSlot), 1))[0] as string;
    const count = async (): Promise<number> => 1_000_000 - (await store.peek(limit, key, timeoutMs)).remaining;
    const load = new Load(limit, key);
    await expect.poll(() => load.decided, soon).toBeGreaterThan(100);
    const before = await count();
    await failover(slotOf(key));
    const { decided } = load;
    await expect.poll(() => load.decided, soon).toBeGreaterThan(decided + 200);
    await load.stop();
    const after = await count();
    expect(after).toBeLessThanOrEqual(load.decided + load.failed);
    // A killed master may lose charges that it had not replicated yet.
    expect(after).toBeGreaterThanOrEqual(how === "killed" ? before : load.decided);
  });
});
