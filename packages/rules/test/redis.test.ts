import { readFileSync } from "node:fs";
import { type RedisCluster, type RedisServer, startCluster, startProxy, startRedis, startSentinel } from "@floodgate/test-servers";
import { type Cluster, Redis } from "ioredis";
import type { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { createClient, type createCluster, createSentinel, TimeoutError } from "redis";
import type { createClient as createClient5, createCluster as createCluster5 } from "redis5";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { type Connected, type LibraryName, libraries } from "../../store-redis/test/libraries.js";
import { type LiveRules, pullRules, pushRules, RulesError, type RulesRedis, redisRules } from "../src/index.js";
import { limited, soon, User } from "./harness.js";

// Patient enough for a machine that is busy with other tests.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** No poll during a test: changes must arrive by message. */
const noPolls = { pollMs: 3_600_000 };
/** Older versions in `npm run test:long`. */
const names = (Object.keys(libraries) as LibraryName[]).filter((name) => allRuns || name.endsWith(" 6"));

let server: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  [server, cluster] = await Promise.all([startRedis(), startCluster({ replicasPerMaster: 0 })]);
});
afterAll(() => Promise.all([server?.stop(), cluster?.stop()]));

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const opened of open.splice(0).reverse()) await opened.close();
});

async function connect(name: LibraryName): Promise<RulesRedis> {
  return opened(await libraries[name].connect(server.port));
}

async function connectCluster(name: LibraryName): Promise<RulesRedis> {
  return opened(await libraries[name].connectCluster(cluster.nodes.map(({ port }) => port)));
}

function opened(connected: Connected): RulesRedis {
  open.push(connected);
  return connected.client as unknown as RulesRedis;
}

async function follow(client: RulesRedis, key: string, options: { pollMs: number }): Promise<{ rules: LiveRules; user: User }> {
  const rules = await redisRules(client, key, options);
  open.push(rules);
  const user = new User();
  rules.subscribe(user);
  return { rules, user };
}

const becomes = (rules: LiveRules, limit: number) => expect.poll(() => rules.current.rules[0]?.limit, soon).toBe(limit);

let keys = 0;
const freshKey = (): string => `floodgate:rules-${keys++}`;

const kinds = names.flatMap((name) => [
  { kind: name, connected: () => connect(name) },
  { kind: `a Cluster by ${name}`, connected: () => connectCluster(name) },
]);

describe.each(kinds)("rules in Redis: $kind", ({ connected }) => {
  it("are pushed, pulled, and followed by message", async () => {
    const client = await connected();
    const key = freshKey();
    expect(await pullRules(client, key)).toBeUndefined();
    expect(await pushRules(client, key, limited(1))).toBe("1");
    const { rules, user } = await follow(client, key, noPolls);
    expect(rules).toMatchObject({ version: "1", current: { rules: [{ name: "posts", limit: 1, window: "1m" }] } });
    expect(await pushRules(client, key, limited(2))).toBe("2");
    await becomes(rules, 2);
    for (let limit = 3; limit < 10; limit++) {
      await pushRules(client, key, limited(limit));
      await becomes(rules, limit);
    }
    expect(rules.version).toBe("9");
    expect(new Set(user.reports)).toEqual(new Set(["reloaded"]));
    expect(await pullRules(client, key)).toEqual({ text: limited(9), version: "9" });
  });

  it("are replaced by only one of many pushes with the same `ifVersion`", async () => {
    const client = await connected();
    const key = freshKey();
    await pushRules(client, key, limited(1), { ifVersion: "0" });
    const pushes = Array.from({ length: 20 }, (_, i) => pushRules(client, key, limited(i + 2), { ifVersion: "1" }));
    const results = await Promise.allSettled(pushes);
    const won = results.flatMap((result, i) => (result.status === "fulfilled" ? [i] : []));
    expect(won).toHaveLength(1);
    expect(await pullRules(client, key)).toEqual({ text: limited((won[0] as number) + 2), version: "2" });
    const lost = results.find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(lost.reason).toMatchObject({
      code: "FLOODGATE_RULES_CONFLICT",
      message: expect.stringMatching(/the stored version is 2, not 1.*ifVersion: "2"/),
    });
  });

  it("need valid options", async () => {
    const client = await connected();
    await expect(redisRules(client, freshKey(), null as never)).rejects.toThrow(
      "redisRules takes an object of options, but was given null.",
    );
    await expect(redisRules(client, freshKey(), { pollMs: 0 })).rejects.toThrow("redisRules: `pollMs` must be");
    await expect(redisRules(client, undefined as never)).rejects.toThrow("redisRules: `key` must be the name of a Redis key");
    await expect(redisRules(undefined as never, "key")).rejects.toThrow("redisRules: `redis` must be a connected client");
  });

  it("report a key that holds something else, and what to do", async () => {
    const client = await connected();
    const key = freshKey();
    const everywhere = async (...command: string[]) => {
      for (const node of [server, ...cluster.nodes]) await node.command(...command).catch(() => "another node has this slot");
    };
    const foreignValue = (what: string) => ({
      code: "FLOODGATE_FOREIGN_VALUE",
      message: `${key}: this Redis key holds ${what}, not rules. Use another key, or delete it (DEL ${key}).`,
    });
    await everywhere("SET", key, "text");
    const notHash = foreignValue("a value that is not a hash");
    await expect(redisRules(client, key)).rejects.toMatchObject(notHash);
    await expect(pullRules(client, key)).rejects.toMatchObject(notHash);
    await expect(pushRules(client, key, limited(1))).rejects.toMatchObject(notHash);
    await everywhere("DEL", key);
    await everywhere("HSET", key, "name", "ann");
    for (const options of [{}, { ifVersion: "0" }]) {
      await expect(pushRules(client, key, limited(1), options)).rejects.toMatchObject(foreignValue("a hash without `version` and `rules`"));
    }
    await everywhere("HSET", key, "version", "1.2.3");
    await expect(pushRules(client, key, limited(1))).rejects.toMatchObject(foreignValue("a hash whose `version` is not a whole number"));
    expect(await pullRules(client, key)).toBeUndefined();
  });

  it("leave no connection open after `close`", async () => {
    const client = await connected();
    const key = freshKey();
    await pushRules(client, key, limited(1));
    await follow(client, key, noPolls);
    const nodes = [server, ...cluster.nodes];
    const connections = async () => (await Promise.all(nodes.map((node) => node.command("CLIENT", "LIST")))).join("").split("\n").length;
    await expect.poll(() => subscribersOf(nodes, key), soon).toBe(1);
    const before = await connections();
    const more = [await redisRules(client, key, noPolls), await redisRules(client, key, noPolls)];
    await expect.poll(() => subscribersOf(nodes, key), soon).toBe(3);
    // The last one is closed before it has subscribed.
    more.push(await redisRules(client, key, noPolls));
    for (const rules of more) await rules.close();
    await expect.poll(() => subscribersOf(nodes, key), soon).toBe(1);
    await expect.poll(connections, soon).toBe(before);
    expect(await pullRules(client, key)).toMatchObject({ version: "1" });
  });
});

describe.each(names)("rules in Redis, with failures: %s", (name) => {
  it("are found by polling if the message was lost", async () => {
    const client = await connect(name);
    const key = freshKey();
    await pushRules(client, key, limited(1));
    const { rules, user } = await follow(client, key, { pollMs: 20 });
    // Written as by a push, but without a message.
    await server.command("HSET", key, "rules", limited(2), "version", "2");
    await becomes(rules, 2);
    expect(rules.version).toBe("2");
    expect(user.reports).toEqual(["reloaded"]);
  });

  it("are read as soon as Redis is back", async () => {
    const lost = await startRedis();
    open.push({ close: () => lost.stop() });
    const proxy = await startProxy(lost.port);
    open.push({ close: async () => proxy.stop() });
    const client = opened(await libraries[name].connect(proxy.port));
    const key = freshKey();
    await pushRules(client, key, limited(1));
    const { rules, user } = await follow(client, key, noPolls);
    await expect.poll(() => subscribersOf([lost], key), soon).toBe(1);
    // Redis comes back empty and gets other rules with the known version.
    proxy.refuse();
    proxy.cut();
    await lost.restart();
    await lost.command("HSET", key, "rules", limited(5), "version", "1");
    await proxy.accept();
    await becomes(rules, 5);
    await expect.poll(() => subscribersOf([lost], key), soon).toBe(1);
    expect(user.reports.at(-1)).toBe("reloaded");
  });

  it("that are invalid or deleted are reported, and the previous rules stay active", async () => {
    const client = await connect(name);
    const key = freshKey();
    await expect(redisRules(client, key)).rejects.toMatchObject({
      code: "FLOODGATE_RULES_UNAVAILABLE",
      message: expect.stringMatching(/this Redis key holds no rules/),
    });
    await server.command("HSET", key, "rules", limited(-1), "version", "1");
    await expect(redisRules(client, key)).rejects.toThrow(RulesError);
    await server.command("HSET", key, "rules", limited(1), "version", "2");
    const { rules, user } = await follow(client, key, { pollMs: 20 });
    await server.command("HSET", key, "rules", limited(-1), "version", "3");
    await user.reported(1);
    await server.command("DEL", key);
    await user.reported(2);
    await pushRules(client, key, limited(7));
    await becomes(rules, 7);
    expect(user.reports).toEqual([
      `${key}:2:27: rules[0]: \`limit\` must be a whole number of at least 1, but was -1. Write limit: 100.`,
      expect.stringMatching(/this Redis key holds no rules/),
      "reloaded",
    ]);
  });
});

it("rules are loaded from the master that node-redis finds through Sentinel", async () => {
  const group = await startSentinel();
  open.push({ close: () => group.stop() });
  const client = createSentinel({ name: group.name, sentinelRootNodes: [group.sentinel] });
  client.on("error", () => undefined);
  await client.connect();
  open.push(client);
  const key = freshKey();
  await pushRules(client, key, limited(1));
  const { rules } = await follow(client, key, noPolls);
  await expect.poll(() => subscribersOf(group.nodes, key), soon).toBe(1);
  await pushRules(client, key, limited(2));
  await becomes(rules, 2);
});

it("a Redis that does not answer is reported once, and the previous rules stay active", async () => {
  const lost = await startRedis();
  open.push({ close: () => lost.stop() });
  const client = new Redis({ port: lost.port });
  client.on("error", () => undefined);
  open.push({ close: async () => client.disconnect() });
  const key = freshKey();
  await pushRules(client, key, limited(1));
  const { rules, user } = await follow(client, key, { pollMs: 20 });
  lost.pause();
  expect(await user.reported(1)).toEqual([`${key}: the rules in Redis cannot be read or written: Redis did not answer within 5000 ms.`]);
  expect(rules.current.rules[0]?.limit).toBe(1);
  lost.resume();
  expect((await user.reported(2)).slice(1)).toEqual(["reloaded"]);
  await pushRules(client, key, limited(2));
  await becomes(rules, 2);
  expect(user.reports.slice(1)).toEqual(["reloaded", "reloaded"]);
});

it("an error without a message is reported with its class name", async () => {
  const sendCommand = (): Promise<never> => Promise.reject(new TimeoutError());
  await expect(pullRules({ isOpen: true, sendCommand, duplicate: () => undefined }, "rules")).rejects.toMatchObject({
    code: "FLOODGATE_RULES_UNAVAILABLE",
    message: "rules: the rules in Redis cannot be read or written: TimeoutError.",
  });
});

describe("a Redis user without access to channels, which is the default for new users", () => {
  async function connectWithoutChannels(): Promise<Redis> {
    await server.command("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all", "resetchannels");
    const client = new Redis({ port: server.port, username: "ops", password: "secret" });
    open.push({ close: () => client.quit() });
    return client;
  }

  it("can push, and polling finds the new version", async () => {
    const client = await connectWithoutChannels();
    const key = freshKey();
    expect(await pushRules(client, key, limited(1), { ifVersion: "0" })).toBe("1");
    const { rules } = await follow(client, key, { pollMs: 20 });
    expect(await pushRules(client, key, limited(2), { ifVersion: "1" })).toBe("2");
    await becomes(rules, 2);
  });

  it("finds by polling rules that were deleted and pushed again with the known version", async () => {
    const client = await connectWithoutChannels();
    const [key, other] = [freshKey(), freshKey()];
    for (const limit of [1, 2]) await pushRules(client, key, limited(limit));
    for (const limit of [3, 4]) await pushRules(client, other, limited(limit));
    const { rules } = await follow(client, key, { pollMs: 20 });
    // Atomic, so that no poll sees another version.
    await client.rename(other, key);
    await becomes(rules, 4);
    expect(rules.version).toBe("2");
  });
});

describe("a Redis user with the commands that docs/redis.md lists", () => {
  const docs = readFileSync(`${__dirname}/../../../docs/redis.md`, "utf8");
  const listed = [...new Set((/^- Rules in Redis need.*\n.*/m.exec(docs) as RegExpExecArray)[0].match(/\+(?!scan)[a-z]+/g))];
  const connecting = ["+client", "+hello", "+info", "+ping", "+select"];

  async function connectWith(commands: readonly string[]): Promise<Redis> {
    const username = freshKey();
    await server.command("ACL", "SETUSER", username, "on", ">secret", "~floodgate:*", "&floodgate:*", "-@all", ...connecting, ...commands);
    const client = new Redis({ port: server.port, username, password: "secret" });
    open.push({ close: () => client.quit() });
    return client;
  }

  it("pushes and follows", async () => {
    const client = await connectWith(listed);
    const key = freshKey();
    await pushRules(client, key, limited(1));
    const { rules, user } = await follow(client, key, noPolls);
    await pushRules(client, key, limited(2));
    await becomes(rules, 2);
    expect(user.reports).toEqual(["reloaded"]);
  });

  it.each(listed.filter((command) => !["+publish", "+subscribe"].includes(command)))("is told that it needs %s", async (command) => {
    const client = await connectWith(listed.filter((other) => other !== command));
    const failed = pushRules(client, freshKey(), limited(1));
    const advice = expect.stringMatching(new RegExp(`Allow it: ACL SETUSER <user> .*\\${command}\\b.* See docs/redis\\.md\\.$`));
    await expect(failed).rejects.toMatchObject({ code: "FLOODGATE_RULES_UNAVAILABLE", message: advice });
  });
});

describe("a push", () => {
  it("replaces rules that were written without a version", async () => {
    const client = await connect("ioredis 6");
    const key = freshKey();
    await server.command("HSET", key, "rules", limited(1));
    expect(await pullRules(client, key)).toEqual({ text: limited(1), version: "0" });
    expect(await pushRules(client, key, limited(2), { ifVersion: "0" })).toBe("1");
  });

  it("of invalid rules writes nothing", async () => {
    const client = await connect("ioredis 6");
    const key = freshKey();
    await expect(pushRules(client, key, limited(-1))).rejects.toThrow(RulesError);
    expect(await pullRules(client, key)).toBeUndefined();
  });

  it.each(["ioredis 6", "redis 6"])("uses the key prefix of the client of %s", async (library) => {
    const options = { socket: { port: server.port }, keyPrefix: "app:" };
    const client = library === "redis 6" ? await createClient(options).connect() : new Redis({ port: server.port, keyPrefix: "app:" });
    open.push({ close: () => client.quit() });
    const key = freshKey();
    await pushRules(client, key, limited(1));
    expect(await server.command("HGET", `app:${key}`, "version")).toBe("1");
    const { rules } = await follow(client, key, noPolls);
    await expect.poll(() => subscribersOf([server], `app:${key}`), soon).toBe(1);
    await pushRules(client, key, limited(2));
    await becomes(rules, 2);
  });

  it.each([
    ["no client", {} as RulesRedis, "key", /`redis` must be a connected client of ioredis or of redis/],
    ["a promise", Promise.resolve() as unknown as RulesRedis, "key", /`redis` must be a connected client/],
    ["no key", new Redis({ lazyConnect: true }), "", /`key` must be the name of a Redis key, but was ""\. Write "floodgate:rules"\.$/],
  ])("needs a client and a key, not %s", async (_, client, key, message) => {
    const error = { code: "FLOODGATE_INVALID_OPTION", message: expect.stringMatching(message) };
    await expect(pushRules(client, key, limited(1))).rejects.toMatchObject(error);
    await expect(pullRules(client, key)).rejects.toMatchObject(error);
    await expect(redisRules(client, key)).rejects.toMatchObject(error);
  });

  it("reports a client that was never connected", async () => {
    const client = createClient({ url: `redis://127.0.0.1:${server.port}` });
    await expect(redisRules(client, "rules")).rejects.toMatchObject({
      code: "FLOODGATE_RULES_UNAVAILABLE",
      message: expect.stringMatching(/^rules: the rules in Redis cannot be read or written: /),
    });
  });
});

async function subscribersOf(nodes: readonly RedisServer[], key: string): Promise<number> {
  const counts = await Promise.all(nodes.map((node) => node.command("PUBSUB", "NUMSUB", key)));
  return counts.reduce<number>((sum, count) => sum + Number((count as unknown[])[1]), 0);
}

/** Compiles only if `RulesRedis` accepts the types of all clients. */
type Clients = [Redis, Cluster, Redis5, Cluster5, ...(ReturnType<typeof createClient> | ReturnType<typeof createCluster>)[]];
type Clients5 = (ReturnType<typeof createClient5> | ReturnType<typeof createCluster5>)[];
const accepted: [Clients, Clients5] extends [RulesRedis[], RulesRedis[]] ? true : never = true;
it("the types accept clients of each library and version", () => expect(accepted).toBe(true));
