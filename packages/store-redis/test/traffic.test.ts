import { createLimiter, type Decision, fixedWindow, type Store } from "@floodgate/core";
import { asCharge, type Check, createLimit, type Limit } from "@floodgate/core/store";
import { memoryStore } from "@floodgate/store-memory";
import { type RedisServer, startProxy, startRedis, type TcpProxy } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { Cluster, Redis } from "ioredis";
import { createClient, createClientPool, createCluster } from "redis";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { type AnyRedis, redisStore } from "../src/index.js";
import { namesOf, watched } from "./commands.js";
import { type Connected, libraries } from "./libraries.js";
import { policies } from "./policies.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const patienceMs = 20_000;
const yearly = createLimit("yearly", fixedWindow({ limit: 10, window: "365d" }));

let server: RedisServer;
/** Starts a server for a group. What a timed-out test of another group still sends does not reach it. */
function useOwnServer(): void {
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());
}

let keys = 0;
const freshKey = (): string => `key-${keys++}`;

/** Loads the general script, and those of a request alone under up to three limits. */
async function loadScripts(store: Store<"async">): Promise<void> {
  await store.consume(yearly, "none", 1, patienceMs);
  for (const limits of [1, 2, 3]) await store.consumeAll(checksOf(limits, "none"), patienceMs);
  await store.reset(yearly, "none", patienceMs);
}

/** Checks of one key under `count` limits. */
const checksOf = (limits: number, key: string): Check[] => Array.from({ length: limits }, (_, i) => ({ limit: limitOf(i), key, cost: 1 }));

const limits: Limit[] = [];
function limitOf(i: number): Limit {
  limits[i] ??= createLimit(`limit-${i}`, yearly.policy);
  return limits[i];
}

describe.each(Object.entries(libraries))("a store with %s", (_, library) => {
  useOwnServer();
  let connected: Connected;
  let store: Store<"async">;
  beforeAll(async () => {
    connected = await library.connect(server.port);
    store = redisStore(connected.client);
    await loadScripts(store);
  });
  afterAll(() => connected?.close());

  it("sends nothing when it is created", async () => {
    const { commands } = await watched(server, () => {
      createLimiter({ name: "api", policy: yearly.policy, store: redisStore(connected.client) });
      return (connected.client as Redis).ping();
    });
    expect(namesOf(commands)).toEqual(["PING"]);
  });

  it("learns the server's time from its first decision, and then sends one command per decision", async () => {
    const fresh = redisStore(connected.client, { prefix: "fresh" });
    const key = freshKey();
    const first = await watched(server, () => fresh.consume(yearly, key, 1, patienceMs));
    expect(namesOf(first.commands)).toEqual(["EVALSHA", "EVALSHA"]);
    expect(first.answer.remaining).toBe(9);
    const second = await watched(server, () => fresh.consume(yearly, key, 1, patienceMs));
    expect(namesOf(second.commands)).toEqual(["EVALSHA"]);
    expect(second.answer.remaining).toBe(8);
  });

  it("decides calls of one moment in their order when the server lacks the script of the first", async () => {
    onTestFinished(() => loadScripts(store));
    const fresh = redisStore(connected.client, { prefix: freshKey() });
    await server.command("SCRIPT", "FLUSH");
    await fresh.consume(yearly, freshKey(), 1, patienceMs);
    const key = freshKey();
    const decisions = await Promise.all([fresh.peek(yearly, key, patienceMs), fresh.consume(yearly, key, 1, patienceMs)]);
    expect(decisions.map(({ used }) => used)).toEqual([0, 1]);
  });

  it.each([1, 2, 20])("sends one command for a decision under %i limits", async (count) => {
    const { commands } = await watched(server, () => store.consumeAll(checksOf(count, freshKey()), patienceMs));
    expect(commands).toMatchObject([{ name: "EVALSHA", keys: { length: count } }]);
  });

  it("sends one command each for a peek, a settlement and a reset", async () => {
    const key = freshKey();
    const decision = await store.consume(yearly, key, 3, patienceMs);
    for (const act of [
      async () => store.peek(yearly, key, patienceMs),
      () => store.settle(yearly, key, asCharge(decision), 2, patienceMs),
      () => store.reset(yearly, key, patienceMs),
    ]) {
      expect(namesOf((await watched<Promise<unknown>>(server, act)).commands)).toEqual(["EVALSHA"]);
    }
  });

  it("sends what waits at the same moment in one command if it is little, else in two, so that one is written while Redis runs the other", async () => {
    await loadScripts(store);
    for (const [requests, rounds] of [
      [2, 1],
      [8, 1],
      [20, 2],
      [64, 2],
    ] as const) {
      const ask = (): Promise<unknown> =>
        Promise.all(Array.from({ length: requests }, () => store.consume(yearly, freshKey(), 1, patienceMs)));
      const { commands } = await watched(server, ask);
      expect(namesOf(commands)).toEqual(Array(rounds).fill("EVALSHA"));
    }
  });

  it("resends the source once per round when the server has lost the script, and keeps the order", async () => {
    await server.command("SCRIPT", "FLUSH");
    const key = freshKey();
    const { answer, commands } = await watched(server, () =>
      Promise.all(Array.from({ length: 80 }, () => store.consume(yearly, key, 1, patienceMs))),
    );
    expect(namesOf(commands).sort()).toEqual(["EVAL", "EVAL", "EVALSHA", "EVALSHA"]);
    expect(answer.map(({ allowed }) => allowed)).toEqual(Array.from({ length: 80 }, (_, i) => i < 10));
    const { commands: next } = await watched(server, () => store.peek(yearly, key, patienceMs));
    expect(namesOf(next)).toEqual(["EVALSHA"]);
  });

  it.each<[string, string, string[], string[]]>([
    ["may not run scripts", "NOPERM", ["ACL", "SETUSER", "default", "-evalsha"], ["ACL", "SETUSER", "default", "+evalsha"]],
    ["takes no writes", ". Connect to the master, and anew after a failover", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
    ["has no memory left", "OOM", ["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]],
  ])("does not send it where the server %s: the decision fails", async (_, word, begin, end) => {
    const key = freshKey();
    await loadScripts(store);
    await server.command(...begin);
    const { answer, commands } = await watched(server, () =>
      Promise.resolve(store.consume(yearly, key, 1, patienceMs)).catch((error: unknown) => error),
    ).finally(() => server.command(...end));
    expect(answer).toMatchObject({ code: "FLOODGATE_STORE_FAULT", message: expect.stringContaining(word) });
    expect(namesOf(commands)).not.toContain("EVAL");
    expect((await store.peek(yearly, key, patienceMs)).remaining).toBe(10);
  });

  it("learns the server's time again after an error, because the next server may have another clock", async () => {
    await server.command("ACL", "SETUSER", "default", "-evalsha");
    const refused = Promise.resolve(store.peek(yearly, freshKey(), patienceMs)).finally(() =>
      server.command("ACL", "SETUSER", "default", "+evalsha"),
    );
    await expect(refused).rejects.toMatchObject({ code: "FLOODGATE_STORE_FAULT" });
    for (const names of [["EVALSHA", "EVALSHA"], ["EVALSHA"]]) {
      expect(namesOf((await watched(server, () => store.peek(yearly, freshKey(), patienceMs))).commands)).toEqual(names);
    }
  });

  it("keeps working after the server restarts", async () => {
    await server.restart();
    const { answer, commands } = await watched(server, () => store.consume(yearly, freshKey(), 1, patienceMs));
    expect(answer.remaining).toBe(9);
    expect(namesOf(commands).filter((name) => name === "EVAL")).toHaveLength(1);
  });
});

describe("decisions that wait together", () => {
  const asks = fc.array(
    fc.array(fc.record({ key: fc.nat(3), cost: fc.integer({ min: 1, max: 3 }), limits: fc.nat(3) }), { maxLength: 150, size: "max" }),
    {
      minLength: 1,
      maxLength: 3,
    },
  );

  it("are sent together, in order, with at most 128 checks per round, and are decided one by one", async () => {
    // Each attempt has its own server: the monitor sees all commands, and an attempt that timed out may still send some.
    const own = await startRedis();
    onTestFinished(() => own.stop());
    const redis = new Redis(own.port);
    onTestFinished(() => redis.disconnect());
    const nowMs = Date.now();
    // A script's first use sends its command twice.
    await loadScripts(redisStore(redis, { denyCache: false }));
    await fc.assert(
      fc.asyncProperty(asks, async (turns) => {
        const prefix = freshKey();
        const clock = () => nowMs;
        const [there, here] = [redisStore(redis, { prefix, clock, denyCache: false }), memoryStore({ clock })];
        const ask = (store: Store, { key, cost, limits }: { key: number; cost: number; limits: number }) => {
          if (limits === 0) return store.consume(yearly, `${key}`, cost, patienceMs);
          return store.consumeAll(
            checksOf(limits, `${key}`).map((check) => ({ ...check, cost })),
            patienceMs,
          );
        };
        await there.peek(yearly, "none", patienceMs);
        const { answer, commands } = await watched(own, async () => {
          const answers: unknown[] = [];
          for (const turn of turns) {
            for (const one of turn) answers.push(ask(there, one));
            await new Promise(setImmediate);
          }
          return Promise.all(answers);
        });
        const all = turns.flat();
        expect(answer).toEqual(all.map((one) => ask(here, one)));
        const asked = all.flatMap(({ key, limits }) => Array.from({ length: Math.max(limits, 1) }, () => `{${key}}`));
        // Equal requests of one key share a place, so some keys are missing. The others keep their order.
        const sent = commands.flatMap((command) => command.keys.map((text) => /\{.*\}/.exec(text)?.[0]));
        let at = 0;
        for (const key of asked) if (key === sent[at]) at++;
        expect(at).toBe(sent.length);
        for (const command of commands) expect(command.keys.length).toBeLessThanOrEqual(128);
        expect(commands.length).toBeLessThanOrEqual(2 * turns.length + Math.ceil(asked.length / 32));
      }),
      // Shrinking a schedule of hundreds of decisions would take minutes.
      { ...runs(25), endOnFailure: true },
    );
  });
});

describe("equal requests of one key that wait together", () => {
  useOwnServer();
  let redis: Redis;
  beforeAll(async () => {
    redis = new Redis(server.port);
    await loadScripts(redisStore(redis));
  });
  afterAll(() => redis?.disconnect());

  const bursts = fc.array(
    fc.record({
      afterMs: fc.integer({ min: -50, max: 2000 }),
      cost: fc.integer({ min: 1, max: 3 }),
      times: fc.integer({ min: 1, max: 20 }),
    }),
    {
      minLength: 1,
      maxLength: 8,
    },
  );

  it.each([true, false])("are decided one by one, as in memory, with the deny cache: %s", async (denyCache) => {
    await fc.assert(
      fc.asyncProperty(policies, bursts, async (policy, life) => {
        let nowMs = 1_789_948_800_000;
        const clock = (): number => nowMs;
        const limit = createLimit("burst", policy);
        const [there, here] = [redisStore(redis, { prefix: freshKey(), clock, denyCache }), memoryStore({ clock })];
        for (const { afterMs, cost, times } of life) {
          nowMs += afterMs;
          const burst = <T>(ask: (cost: number) => T): T[] => Array.from({ length: times }, () => ask(cost));
          const [theirs, ours] = [
            await Promise.all(burst((units) => there.consume(limit, "key", units, patienceMs))),
            burst((units) => here.consume(limit, "key", units)),
          ];
          expect(theirs).toEqual(ours);
          const inspected = await Promise.all([there, here].map((store) => store.keyState(limit, "key", patienceMs)));
          expect(inspected[0]?.state).toEqual(inspected[1]?.state);
        }
      }),
      runs(100),
    );
  });

  it("cost the server one key, whatever their number", async () => {
    const store = redisStore(redis, { prefix: freshKey() });
    await store.peek(yearly, "none", patienceMs);
    const { answer, commands } = await watched(server, () =>
      Promise.all(Array.from({ length: 100 }, () => store.consume(yearly, "hot", 1, patienceMs))),
    );
    expect(answer.filter(({ allowed }) => allowed)).toHaveLength(10);
    expect(commands.map((command) => command.keys.length)).toEqual([1, 1]);
  });

  it("are turned away together while the key is blocked, and settle apart", async () => {
    const store = redisStore(redis, { prefix: freshKey() });
    const five = () => Promise.all(Array.from({ length: 5 }, () => store.consume(yearly, "user", 1, patienceMs)));
    await store.block("yearly", "user", 60_000, "block", patienceMs);
    expect((await five()).map(({ blocked }) => blocked?.kind)).toEqual(Array(5).fill("block"));
    await store.unblock("yearly", "user", patienceMs);
    const decisions = await five();
    expect(decisions.map(({ remaining }) => remaining)).toEqual([9, 8, 7, 6, 5]);
    const changes = await Promise.all(decisions.map((decision) => store.settle(yearly, "user", asCharge(decision), 0, patienceMs)));
    expect(changes).toEqual(Array(5).fill(-1));
    expect((await store.peek(yearly, "user", patienceMs)).remaining).toBe(10);
  });
});

describe("a client that is not connected", () => {
  useOwnServer();
  let proxy: TcpProxy;
  let close: (() => unknown) | undefined;
  beforeAll(async () => {
    proxy = await startProxy(server.port);
  });
  afterEach(async () => {
    await proxy.accept();
    close?.();
  });
  afterAll(() => proxy?.stop());

  it("connects with the first decision if it is a lazy ioredis client", async () => {
    const redis = new Redis(server.port, { lazyConnect: true });
    close = () => redis.disconnect();
    const store = redisStore(redis);
    await new Promise(setImmediate);
    expect(redis.status).toBe("wait");
    expect((await store.consume(yearly, freshKey(), 1, patienceMs)).remaining).toBe(9);
  });

  it("receives no commands: decisions wait in the store", async () => {
    const direct = new Redis(server.port);
    await loadScripts(redisStore(direct));
    await direct.quit();
    proxy.refuse();
    const redis = new Redis(proxy.port, { retryStrategy: () => 10 });
    redis.on("error", () => undefined);
    close = () => redis.disconnect();
    const store = redisStore(redis);
    const key = freshKey();
    await expect(store.consume(yearly, key, 1, 30)).rejects.toMatchObject({ code: "FLOODGATE_STORE_TIMEOUT" });
    const { answer, commands } = await watched(server, async () => {
      const decisions = [1, 2].map((cost) => store.consume(yearly, key, cost, patienceMs));
      await proxy.accept();
      return Promise.all(decisions);
    });
    expect(answer.map(({ remaining }: Decision) => remaining)).toEqual([9, 7]);
    expect(commands.flatMap(({ keys }) => keys)).toHaveLength(4);
  });

  it.each<[string, () => AnyRedis]>([
    ["createClient", () => createClient({ url: `redis://127.0.0.1:${server.port}` })],
    ["createCluster", () => createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${server.port}` }] })],
  ])("fails at once where what %s made was never told to connect", async (_, make) => {
    const decision = redisStore(make()).consume(yearly, freshKey(), 1, patienceMs);
    const message = expect.stringMatching(/`await client.connect\(\)` first/);
    await expect(decision).rejects.toMatchObject({ code: "FLOODGATE_STORE_FAULT", message });
  });

  it("fails decisions at once if it was closed", async () => {
    for (const redis of [new Redis(server.port), new Cluster([{ port: server.port }], { lazyConnect: true })]) {
      redis.disconnect();
      await expect.poll(() => redis.status, { timeout: patienceMs }).toBe("end");
      const decision = redisStore(redis).consume(yearly, freshKey(), 1, patienceMs);
      await expect(decision).rejects.toMatchObject({ code: "FLOODGATE_STORE_FAULT", message: expect.stringMatching(/has been closed/) });
    }
  });
});

describe("a value that is not a client", () => {
  const redis = new Redis({ lazyConnect: true });
  const nothing = (): void => undefined;
  it.each<[string, unknown, RegExp]>([
    ["nothing", undefined, /was given undefined/],
    ["a promise of a client", Promise.resolve(redis), /a promise of one: await it first/],
    ["a URL, whose password is not shown,", "redis://user:secret@127.0.0.1", /was given a string\. Write redisStore\(new Redis/],
    ["a class", Redis, /was given a function/],
    ["a plain object", {}, /an object of another kind/],
    [
      "ioredis-mock, which has a function for each command",
      { connect: nothing, evalsha: nothing, customCommand: nothing },
      /an object of another kind/,
    ],
    ["a pipeline of ioredis", redis.pipeline(), /an object of another kind/],
    ["a pipeline of a Cluster of ioredis", new Cluster([{ port: 1 }], { lazyConnect: true }).pipeline(), /an object of another kind/],
    ["a transaction of node-redis", createClient().multi(), /an object of another kind/],
    ["a pool of node-redis", createClientPool(), /a pool: one connection is enough/],
  ])("is refused when the store is made: %s", (_, client, message) => {
    expect(() => redisStore(client as AnyRedis)).toThrow(
      expect.objectContaining({ code: "FLOODGATE_INVALID_OPTION", message: expect.stringMatching(message) }),
    );
  });
});
