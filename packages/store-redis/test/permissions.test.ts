import { readFileSync, rmSync } from "node:fs";
import { createLimiter, type FloodgateEvent, fixedWindow, type Limiter, observe, type Policy, slidingWindowLog } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { type RedisServer, startCluster, startRedis } from "@floodgate/test-servers";
import calculateSlot from "cluster-key-slot";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { fault, stepFault } from "../src/faults.js";
import { redisStore } from "../src/index.js";
import { commands } from "../src/script.js";
import { storeLibraries } from "./libraries.js";
import { patienceMs } from "./patient-store.js";

let server: RedisServer;
let admin: Redis;
const clients: Redis[] = [];
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port);
});
afterAll(async () => {
  for (const client of [admin, ...clients]) client?.disconnect();
  await server?.stop();
});

/** Exactly what the docs list. */
const docs = readFileSync(`${__dirname}/../../../docs/redis.md`, "utf8");
const documented = /ACL SETUSER floodgate (.*)\n/.exec(docs)?.[1] as string;
const onCluster = /^- On a Cluster, add `([^`]*)`/m.exec(docs)?.[1]?.split(" ") as string[];

let users = 0;
/** A client whose user has the permissions of the docs, changed by `change`. */
async function restricted(...change: string[]): Promise<Redis> {
  const username = `user-${users++}`;
  const rules = documented.replace("<password>", "p").split(" ");
  await admin.call("ACL", "SETUSER", username, ...rules, ...change);
  const client = new Redis(server.port, { username, password: "p" });
  clients.push(client);
  return client;
}

const policies = [
  slidingWindowLog({ limit: 3, window: "365d" }),
  slidingWindowLog({ limit: 300, window: "365d" }),
  fixedWindow({ limit: 3, window: "365d" }),
];

/** Uses everything. Returns the messages of what failed, and asserts that nothing passed uncounted. */
async function messagesOf(client: Redis, prefix: string): Promise<string[]> {
  const messages: string[] = [];
  const limiterOn = (redis: Redis, i: number): Limiter<"async"> =>
    createLimiter({
      name: `limit-${i}`,
      policy: policies[i] as Policy,
      store: redisStore(redis, { prefix }),
      timeoutMs: patienceMs,
      receiptSecret: "a secret that all of these processes have",
    });
  const note = async <T>(act: T | PromiseLike<T>): Promise<T | undefined> => {
    try {
      return await act;
    } catch (error) {
      messages.push((error as Error).message);
      return undefined;
    }
  };
  const stop = observe((event: FloodgateEvent) => {
    if (event.type === "store-error") messages.push((event.error as Error).message);
  });
  for (const i of policies.keys()) {
    const limiter = limiterOn(client, i);
    const trusted = limiterOn(admin, i);
    // A log so long that its length is asked for.
    let agoMs = 1000;
    const before = redisStore(admin, { prefix, clock: () => Date.now() - agoMs-- });
    if (i === 1)
      for (let n = 0; n < 20; n++) await before.consume(createLimit(limiter.name, policies[i] as Policy), "other", 1, patienceMs);
    let passed = 0;
    for (const cost of [1, 1, 1, 1, 20, 20]) {
      const decisions = await Promise.all(["key", "key", "other"].map((key) => limiter.consume(key, { cost })));
      for (const decision of decisions.slice(0, 2)) if (decision.allowed && !decision.degraded) passed += cost;
    }
    // What failed after its charge was written is counted too.
    const { limit, remaining } = await trusted.peek("key");
    expect(limit - remaining).toBeGreaterThanOrEqual(passed);

    await trusted.reset("key");
    const charged = await trusted.consume("key", { cost: 2 });
    await note(limiter.settle("key", trusted.receipt(charged), 1));
    const decision = await limiter.consume("key");
    if (!decision.degraded) await note(limiter.refund("key", decision));
    await trusted.block("key", "1h");
    expect(await limiter.consume("key")).toSatisfy(({ allowed, degraded }) => !allowed || degraded);
    expect(await note(limiter.peek("key"))).toSatisfy((look) => look === undefined || !look.allowed || look.degraded);
    await note(limiter.unblock("key"));
    await note(limiter.block("key", "1h"));
    await note(limiter.reset("key"));
  }
  stop();
  return messages;
}

describe("a Redis user with the permissions that docs/redis.md lists", () => {
  it("can do everything, and the list holds exactly the commands of the scripts", async () => {
    expect(await messagesOf(await restricted(), "floodgate")).toEqual([]);
    const nodeRedis = createClient({ socket: { port: server.port }, username: `user-${users - 1}`, password: "p" });
    await nodeRedis.connect();
    expect(await redisStore(nodeRedis).consume(createLimit("node-redis", policies[0] as Policy), "key", 1, patienceMs)).toMatchObject({
      remaining: 2,
    });
    nodeRedis.destroy();
    const listed = documented.match(/\+\S+/g)?.map((rule) => rule.slice(1).toUpperCase());
    const connecting = ["CLIENT", "EVAL", "EVALSHA", "HELLO", "INFO", "PING", "SELECT"];
    expect(listed?.sort()).toEqual([...commands, ...connecting].sort());
  });

  // A blocked key is read by GET if MGET is missing. Leases need the others.
  const used = commands.filter((name) => !["EXISTS", "MGET", "ZADD", "ZCARD", "ZREMRANGEBYSCORE"].includes(name));
  it.each([...used, "EVAL", "EVALSHA"])(
    "but %s: the error says which rule allows it, nothing passes uncounted, and no block is overlooked",
    async (name) => {
      const prefix = `without-${name}`;
      const client = await restricted(`-${name.toLowerCase()}`, `~${prefix}:*`);
      await admin.script("FLUSH");
      const messages = await messagesOf(client, prefix);
      expect(messages).not.toEqual([]);
      const advice = expect.stringMatching(new RegExp(`Allow it: ACL SETUSER <user> (.* )?\\+${name.toLowerCase()}\\b.* See`));
      for (const message of messages.filter((text) => !text.includes("has failed"))) expect(message).toEqual(advice);
    },
  );

  it.each(["EXISTS", "MGET", "ZADD", "ZCARD", "ZREMRANGEBYSCORE"])("but %s: every request is counted, with leases too", async (name) => {
    const client = await restricted(`-${name.toLowerCase()}`);
    const store = redisStore(client, { prefix: "floodgate", lease: true });
    const limiter = createLimiter({
      name: `leased-${name}`,
      policy: fixedWindow({ limit: 300, window: "365d" }),
      store,
      timeoutMs: patienceMs,
    });
    let passed = 0;
    for (let i = 0; i < 20; i++) {
      const decisions = await Promise.all(Array.from({ length: 20 }, () => limiter.consume("key")));
      passed += decisions.filter(({ allowed, degraded }) => allowed && !degraded).length;
      expect(decisions.some(({ degraded }) => degraded)).toBe(false);
    }
    expect(passed).toBe(300);
  });

  it("but other keys: the error says which rule allows them", async () => {
    const messages = await messagesOf(await restricted("resetkeys", "~another:*"), "floodgate-2");
    expect(messages[0]).toMatch(/ key.*Allow it: ACL SETUSER <user> ~<prefix>:\*\. See/);
  });
});

it("with those for a Cluster, each library decides there, also while a slot moves; and the libraries send all of them", {
  timeout: 60_000,
}, async () => {
  const cluster = await startCluster({ replicasPerMaster: 0 });
  onTestFinished(() => cluster.stop());
  const rules = documented.replace("<password>", "p").split(" ");
  for (const node of cluster.nodes) await node.command("ACL", "SETUSER", "user", ...rules, ...onCluster);
  const monitors = await Promise.all(cluster.nodes.map((node) => node.monitor()));
  for (const library of ["ioredis 6", "redis 6", "iovalkey", "Valkey GLIDE"] as const) {
    const ports = cluster.nodes.map(({ port }) => port);
    const { client, close } = await storeLibraries[library].connectCluster(ports, { username: "user", password: "p" });
    const store = redisStore(client);
    const limit = createLimit(library, fixedWindow({ limit: 3, window: "365d" }));
    for (let key = 0; key < 12; key++) expect(await store.consume(limit, `${key}`, 1, patienceMs)).toMatchObject({ remaining: 2 });
    // A key that the old server does not have is counted by the new one, which wants ASKING first.
    const slot = calculateSlot(`{moving ${library}}`);
    const from = await cluster.masterOf(slot);
    const to = cluster.nodes.find((node) => node !== from) as RedisServer;
    const ids = await Promise.all([from, to].map((node) => node.command("CLUSTER", "MYID")));
    await to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", String(ids[0]));
    await from.command("CLUSTER", "SETSLOT", slot, "MIGRATING", String(ids[1]));
    expect(await store.consume(limit, `moving ${library}`, 1, patienceMs)).toMatchObject({ remaining: 2 });
    await close();
  }
  const lines = (await Promise.all(monitors.map((monitor) => monitor.lines()))).flat();
  for (const monitor of monitors) monitor.stop();
  const sent = new Set(
    lines.map((line) =>
      `+${[...line.matchAll(/"(\w+)"/g)]
        .slice(0, 2)
        .map(([, word]) => word)
        .join("|")}`.toLowerCase(),
    ),
  );
  for (const rule of onCluster) expect([...sent].some((words) => words.startsWith(rule))).toBe(true);
});

it.each(["EVALSHA", "EVAL", "TIME", "SET"])("a server without %s: the error says what the server must have", async (name) => {
  const renamed = await startRedis({ config: { "rename-command": `${name} ""` } });
  onTestFinished(() => renamed.stop());
  const client = new Redis(renamed.port);
  clients.push(client);
  const failed = redisStore(client).consume(createLimit("renamed", policies[0] as Policy), "key", 1, patienceMs);
  await expect(failed).rejects.toThrow(/[^.]\. The server must have each command that docs\/redis\.md lists, under its own name/);
});

it("a server that cannot save: the error has all that it says", async () => {
  const unsaved = await startRedis({ config: { save: '"3600 1"' } });
  onTestFinished(() => unsaved.stop());
  rmSync(unsaved.dir, { recursive: true });
  await unsaved.command("BGSAVE");
  await expect.poll(() => unsaved.info("persistence"), { timeout: 30_000 }).toMatchObject({ rdb_last_bgsave_status: "err" });
  const client = new Redis(unsaved.port);
  clients.push(client);
  const failed = redisStore(client).consume(createLimit("unsaved", policies[0] as Policy), "key", 1, patienceMs);
  await expect(failed).rejects.toThrow(/MISCONF .* Please check the Redis logs for details about the RDB error\./);
});

describe("a permission that a server's error names", () => {
  it.each([
    ["NOPERM this user has no permissions to run the 'evalsha' command or its subcommand", "+evalsha"],
    ["NOPERM User default has no permissions to run the 'evalsha' command", "+evalsha"],
    ["NOPERM No permissions to access a key", "~<prefix>:*"],
    ["ERR ACL failure in script: User default has no permissions to run the 'set' command script: on @user_script:141.", "+set"],
    ["ERR ACL failure in script: User default has no permissions to access the 'floodgate:{a}:b:c' key", "~<prefix>:*"],
  ])("is what the advice allows: %s", (text, rule) => {
    const advice = `${text.replace(/\.$/, "")}. Allow it: ACL SETUSER <user> ${rule}. See docs/redis.md.`;
    for (const { message } of [fault(new Error(text)), stepFault(text, "key")]) expect(message.endsWith(advice)).toBe(true);
  });
});
