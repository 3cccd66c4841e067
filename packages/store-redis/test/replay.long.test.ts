import { createLimiter, type Decision, type FloodgateEvent, fixedWindow, type Store } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { type RedisServer, startProxy, startRedis, type TcpProxy } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { redisStore } from "../src/index.js";
import { type Command, runsDuring, runsOf, watched } from "./commands.js";
import { type Connected, libraries } from "./libraries.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const patienceMs = 20_000;
/** Long enough for a decision on a busy machine, short enough to wait for. */
const timeoutMs = 500;
/** For decisions that must time out. */
const shortMs = 40;

const soon = { interval: 5, timeout: patienceMs };

const yearly = createLimit("yearly", fixedWindow({ limit: 100, window: "365d" }));
const timeout = { status: "rejected", reason: { code: "FLOODGATE_STORE_TIMEOUT" } };

let server: RedisServer;
let proxy: TcpProxy;
beforeAll(async () => {
  server = await startRedis();
  proxy = await startProxy(server.port);
});
afterAll(async () => {
  proxy?.stop();
  await server?.stop();
});

function heal(): void {
  proxy.requests.mode = "pass";
  proxy.replies.mode = "pass";
}

async function cutAndReconnect(): Promise<void> {
  const { accepted } = proxy;
  proxy.cut();
  heal();
  await expect.poll(() => proxy.accepted, soon).toBeGreaterThan(accepted);
}

let keys = 0;
const freshKey = (): string => `key-${keys++}`;

/** A store that already knows the server's clock, so its next decision takes one round trip. */
async function readyStore(client: Connected["client"]): Promise<Store<"async">> {
  const store = redisStore(client);
  await store.peek(yearly, "none", patienceMs);
  return store;
}

/** Sends three requests at once, three more one turn later, and a seventh after another. The first six fill both rounds, in one place each; the seventh waits for a free one. */
async function askForSeven(store: Store<"async">, key: string, waitMs: number): Promise<PromiseSettledResult<Decision>[]> {
  const asked: ReturnType<typeof store.consume>[] = [];
  for (const requests of [3, 3, 1]) {
    for (let i = 0; i < requests; i++) asked.push(store.consume(yearly, key, 1, waitMs));
    await new Promise(setImmediate);
  }
  return Promise.allSettled(asked);
}

const used = async (store: Store<"async">, key: string): Promise<number> => 100 - (await store.peek(yearly, key, patienceMs)).remaining;

const countOf = (commands: readonly Command[], key: string): number =>
  commands.flatMap((command) => command.keys).filter((text) => text.includes(`{${key}}`)).length;

describe.each(Object.entries(libraries))("with %s, a decision", (name, library) => {
  let connected: Connected;
  let store: Store<"async">;
  beforeEach(async () => {
    connected = await library.connect(proxy.port);
    store = await readyStore(connected.client);
  });
  afterEach(() => {
    heal();
    return connected?.close();
  });

  it("whose reply is lost is charged once, even if the library resends it after reconnecting", async () => {
    const key = freshKey();
    proxy.replies.mode = "drop";
    expect(await askForSeven(store, key, timeoutMs)).toMatchObject(Array(7).fill(timeout));
    const { answer, commands } = await watched(server, async () => {
      await cutAndReconnect();
      return used(store, key);
    });
    expect(answer).toBe(6);
    expect(countOf(commands, key)).toBeGreaterThanOrEqual(name.startsWith("ioredis") ? 3 : 1);
  });

  it("that reaches the server after its deadline charges nothing", async () => {
    const key = freshKey();
    const { answer, commands } = await watched(server, async () => {
      proxy.requests.mode = "hold";
      expect(await askForSeven(store, key, shortMs)).toMatchObject(Array(7).fill(timeout));
      proxy.requests.mode = "pass";
      return used(store, key);
    });
    expect(answer).toBe(0);
    expect(countOf(commands, key)).toBeGreaterThanOrEqual(3);
  });

  it("sent to a paused server charges nothing when the server resumes", async () => {
    const key = freshKey();
    server.pause();
    const answers = await askForSeven(store, key, shortMs).finally(() => server.resume());
    expect(answers).toMatchObject(Array(7).fill(timeout));
    expect(await used(store, key)).toBe(0);
  });

  it("that waits for a connection past its deadline is never sent", async () => {
    const key = freshKey();
    proxy.refuse();
    proxy.cut();
    await expect.poll(() => proxy.connections, soon).toBe(0);
    const { commands } = await watched(server, async () => {
      expect(await askForSeven(store, key, shortMs)).toMatchObject(Array(7).fill({ status: "rejected" }));
      await proxy.accept();
      await store.peek(yearly, "none", patienceMs);
    });
    expect(countOf(commands, key)).toBe(0);
  });

  it("whose reply comes after its deadline fails, and the next one works", async () => {
    const key = freshKey();
    proxy.replies.mode = "hold";
    await expect(store.consume(yearly, key, 1, shortMs)).rejects.toMatchObject({ code: "FLOODGATE_STORE_TIMEOUT" });
    proxy.replies.mode = "pass";
    expect(await store.consume(yearly, key, 1, patienceMs)).toMatchObject({ allowed: true });
  });

  it("whose rejection comes after its deadline is not cached", async () => {
    const key = freshKey();
    await store.consume(yearly, key, 100, patienceMs);
    proxy.replies.mode = "hold";
    await expect(store.consume(yearly, key, 1, shortMs)).rejects.toMatchObject({ code: "FLOODGATE_STORE_TIMEOUT" });
    proxy.replies.mode = "pass";
    // This reply arrives after the held one.
    await store.peek(yearly, key, patienceMs);
    expect(await runsDuring(server, () => store.consume(yearly, key, 1, patienceMs))).toBe(1);
  });

  it("of a limiter is decided by onStoreError and marked as degraded", async () => {
    const events: FloodgateEvent[] = [];
    const options = { policy: yearly.policy, store, timeoutMs: shortMs, onEvent: (event: FloodgateEvent) => void events.push(event) };
    const [open, closed] = [
      createLimiter({ name: "open", ...options }),
      createLimiter({ name: "closed", ...options, onStoreError: "deny" }),
    ] as const;
    proxy.replies.mode = "hold";
    expect(await Promise.all([open.consume("k"), closed.consume("k")])).toMatchObject([
      { allowed: true, degraded: true },
      { allowed: false, degraded: true },
    ]);
    expect(events.filter(({ type }) => type === "store-error")).toMatchObject(
      Array(2).fill({ error: { code: "FLOODGATE_STORE_TIMEOUT", message: expect.stringContaining(`${shortMs} ms`) } }),
    );
  });
});

describe("a decision whose connection breaks before its deadline", () => {
  let redis: Redis;
  async function brokenOff(
    autoResendUnfulfilledCommands: boolean,
    waitMs: number,
  ): Promise<{ store: Store<"async">; key: string; answers: unknown[] }> {
    redis = new Redis(proxy.port, { autoResendUnfulfilledCommands });
    redis.on("error", () => undefined);
    const store = await readyStore(redis);
    const key = freshKey();
    proxy.replies.mode = "drop";
    const runs = await runsOf(server);
    const asked = askForSeven(store, key, waitMs);
    await expect.poll(() => runsOf(server), soon).toBe(runs + 2);
    await cutAndReconnect();
    return { store, key, answers: await asked };
  }
  afterEach(() => {
    heal();
    redis?.disconnect();
  });

  it("is charged twice if ioredis resends it: the client is over-counted, never over-admitted", async () => {
    const { store, key, answers } = await brokenOff(true, patienceMs);
    expect(answers).toMatchObject(Array(7).fill({ status: "fulfilled", value: { allowed: true } }));
    expect(await used(store, key)).toBe(13);
  });

  it("is charged once and fails if ioredis does not resend it; later ones work", async () => {
    const { store, key, answers } = await brokenOff(false, timeoutMs);
    expect(answers).toMatchObject(Array(7).fill(timeout));
    expect(await used(store, key)).toBe(6);
  });
});
