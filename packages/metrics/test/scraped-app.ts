import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLimit } from "@floodgate/core/store";
import {
  concurrency,
  createLimiter,
  type FloodgateEvent,
  fixedWindow,
  leakyBucket,
  memoryStore,
  observe,
  rateLimit,
} from "@floodgate/express";
import { fileRules } from "@floodgate/rules";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import express, { type Express } from "express";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { prometheus } from "../src/prometheus.js";

/** The clock of all limits stands still: no window ends, and no bucket refills. */
const clock = (): number => Date.UTC(2026, 0, 1);

/** What one run of `traffic` does under each rule, by result. */
export const requests: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  api: { allowed: 10, limited: 5 },
  login: { allowed: 2, limited: 2, banned: 2 },
  trial: { allowed: 5, "shadow-limited": 3 },
  queue: { allowed: 1, delayed: 4, limited: 2 },
  partners: { allowed: 1, exempt: 3, "missing-key": 2 },
  live: { allowed: 1 },
  closed: { limited: 1 },
  orders: { allowed: 5, limited: 2 },
  unreachable: { "failed-open": 2 },
  tokens: { allowed: 3 },
  sessions: { allowed: 5 },
  uploads: { allowed: 1 },
  // Each of 7 requests is under two rules, and then under one of a second middleware.
  wide: { allowed: 4 },
  narrow: { allowed: 4, limited: 3 },
  last: { allowed: 3, limited: 1 },
};

/** An app with a rule of each kind, its own Redis, and metrics at `/metrics`. */
export class ScrapedApp {
  readonly registry: Registry;
  /** Host and port. */
  readonly address: string;
  /** What the client has seen. */
  readonly answered = { passed: 0, rejected: 0 };
  readonly #dir: string;
  readonly #tidy: () => Promise<void>;
  readonly #limiters: ReturnType<typeof limitersOf>;
  #runs = 0;

  constructor(registry: Registry, server: Server, dir: string, limiters: ReturnType<typeof limitersOf>, tidy: () => Promise<void>) {
    this.registry = registry;
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.#dir = dir;
    this.#limiters = limiters;
    this.#tidy = tidy;
  }

  /** The same traffic each time, from new clients. */
  async traffic(): Promise<void> {
    const client = `client-${++this.#runs}`;
    await this.send(15, "/api", { "x-client": client });
    await this.send(6, "/login", { "x-client": client });
    await this.send(8, "/trial", { "x-client": client });
    await this.send(7, "/queue", { "x-client": client });
    await this.send(3, "/partners", { "x-client": "monitoring" });
    await this.send(2, "/partners", {});
    await this.send(1, "/partners", { "x-client": client });
    await this.send(1, "/closed", { "x-client": client });
    await this.send(7, "/orders", { "x-client": client });
    await this.send(7, "/stack", { "x-client": client });
    await this.send(2, "/unreachable", { "x-client": client });
    await this.changeRules(this.#runs);
    await this.send(1, "/live", { "x-client": client });
    const { tokens, sessions, uploads } = this.#limiters;
    await tokens.settle(client, await tokens.consume(client, { cost: 5 }), 8);
    await tokens.settle(client, await tokens.consume(client, { cost: 5 }), 2);
    await tokens.refund(client, await tokens.consume(client, { cost: 4 }));
    await tokens.block(client, "1h", { by: "ann" });
    await tokens.unblock(client, { by: "ann" });
    for (let i = 0; i < 5; i++) sessions.consume(`${client}-${i}`);
    await uploads.run(client, () => this.#limiters.loseSlots());
  }

  /** Sends requests one after the other. */
  async send(count: number, path: string, headers: Record<string, string>): Promise<void> {
    for (let i = 0; i < count; i++) {
      const response = await fetch(`http://${this.address}${path}`, { headers });
      await response.text();
      this.answered[response.ok ? "passed" : "rejected"]++;
    }
  }

  /** Writes a valid version of the live rules, and then one that is refused. */
  async changeRules(limit: number): Promise<void> {
    await this.#writeRules(`rules: [{ name: live, key: "header:x-client", limit: ${100 + limit}, window: 1m }]`, "rules-reloaded");
    await this.#writeRules("rules: none", "rules-refused");
  }

  async #writeRules(text: string, event: "rules-reloaded" | "rules-refused"): Promise<void> {
    const told = eventOf(event);
    writeFileSync(join(this.#dir, "limits.yaml"), text);
    await told;
  }

  stop(): Promise<void> {
    return this.#tidy();
  }
}

function eventOf(wanted: FloodgateEvent["type"]): Promise<void> {
  return new Promise((resolve) => {
    const stop = observe(({ type }) => {
      if (type !== wanted) return;
      stop();
      resolve();
    });
  });
}

export async function startApp(): Promise<ScrapedApp> {
  const dir = mkdtempSync(join(tmpdir(), "floodgate-metrics-"));
  const servers = [await startRedis(), await startRedis({ config: { "rename-command": ["EVALSHA none1", "EVAL none2"] } })] as const;
  const [redis, broken] = servers.map(({ port, host }) => new Redis(port, host)) as [Redis, Redis];
  const registry = new Registry();
  const stopMetrics = prometheus(registry);
  const app = express();
  app.get("/metrics", async (_req, res) => {
    res.type(registry.contentType).send(await registry.metrics());
  });
  const close = await addRules(app, dir, redis, broken);
  await leaseOnce(redis);
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return new ScrapedApp(registry, server, dir, limitersOf(redis), async () => {
    server.closeAllConnections();
    server.close();
    close();
    stopMetrics();
    redis.disconnect();
    broken.disconnect();
    await Promise.all(servers.map((one: RedisServer) => one.stop()));
    rmSync(dir, { recursive: true });
  });
}

/** Leases units of a hot key, so that the series of leases begin. It asks the store itself, so no request is counted. */
async function leaseOnce(redis: Redis): Promise<void> {
  const store = redisStore(redis, { clock, prefix: "leases", lease: true });
  const limit = createLimit("orders", fixedWindow({ limit: 1000, window: "1m" }));
  for (let i = 0; i < 12; i++) await store.consume(limit, "hot", 1, 10_000);
  await store.releaseLeases();
}

/** A path for each rule. Returns what stops the live rules. */
async function addRules(app: Express, dir: string, redis: Redis, broken: Redis): Promise<() => void> {
  const file = join(dir, "limits.yaml");
  writeFileSync(file, `rules: [{ name: live, key: "header:x-client", limit: 100, window: 1m }]`);
  const rules = await fileRules(file);
  const store = memoryStore({ clock });
  const key = "header:x-client";
  // Nothing on the console; a busy machine is no fault of the store.
  const onEvent = (): void => undefined;
  const timeoutMs = 10_000;
  const per = (limit: number) => fixedWindow({ limit, window: "1m" });

  app.use("/api", rateLimit({ name: "api", key, policy: per(10), store }));
  app.use("/login", rateLimit({ name: "login", key, policy: per(2), store, ban: { after: 3, within: "1m", for: "1h" } }));
  app.use("/trial", rateLimit({ name: "trial", key, policy: per(5), store, mode: "shadow" }));
  app.use("/queue", rateLimit({ name: "queue", key, policy: leakyBucket({ capacity: 5, leak: 100, every: "1s" }), store }));
  const exempt = { keys: ["monitoring"] };
  app.use("/partners", rateLimit({ name: "partners", key, policy: per(100), store, exempt, onMissingKey: "reject" }));
  // A limit of 0 is a warning.
  app.use("/closed", rateLimit({ name: "closed", key, policy: per(0), store, onEvent }));
  app.use("/live", rateLimit({ rules, store, onEvent }));
  app.use("/orders", rateLimit({ name: "orders", key, policy: per(10), cost: 2, store: redisStore(redis, { clock }), timeoutMs }));
  app.use(
    "/unreachable",
    rateLimit({ name: "unreachable", key, policy: per(10), store: redisStore(broken, { clock }), timeoutMs, onEvent }),
  );
  const stack = [
    { name: "wide", key, policy: per(6) },
    { name: "narrow", key, policy: per(4) },
  ] as const;
  app.use("/stack", rateLimit({ rules: stack, store }), rateLimit({ name: "last", key, policy: per(3), store }));
  app.use((_req, res) => {
    res.end("ok");
  });
  return () => rules.close();
}

function limitersOf(redis: Redis) {
  const store = redisStore(redis, { clock, prefix: "tokens" });
  const tokens = createLimiter({ name: "tokens", policy: fixedWindow({ limit: 100, window: "1m" }), store, timeoutMs: 10_000 });
  const sessions = createLimiter({
    name: "sessions",
    policy: fixedWindow({ limit: 100, window: "1m" }),
    store: memoryStore({ clock, maxKeys: 2 }),
  });
  for (const key of ["first", "second"]) sessions.consume(key);
  let nowMs = clock();
  const uploads = createLimiter({
    name: "uploads",
    policy: concurrency({ limit: 3, hold: "100ms" }),
    store: memoryStore({ clock: () => nowMs }),
  });
  const loseSlots = (): Promise<void> => {
    nowMs += 1000;
    return eventOf("slot-lost");
  };
  return { tokens, sessions, uploads, loseSlots };
}
