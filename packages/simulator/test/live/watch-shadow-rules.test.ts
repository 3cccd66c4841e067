import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fixedWindow, limitFor } from "@floodgate/core";
import type { RuleSet, RuleUser } from "@floodgate/core/rules";
import { rateLimit } from "@floodgate/express";
import { memoryStore } from "@floodgate/store-memory";
import express from "express";
import { expect, it } from "vitest";
import { simulate, simulationJson, simulationText, watchShadowRules } from "../../src/index.js";
import { lineAt, logOf, rules } from "../logs.js";

const startMs = Date.UTC(2026, 10, 20, 12, 0, 0);
/** Seconds, client and path of known requests: bursts of some clients, and single ones. */
const traffic = Array.from({ length: 240 }, (_, i): [number, string, string] => [
  Math.floor(i / 3),
  `192.0.2.${i % 11 === 0 ? 9 : i % 4}`,
  i % 5 === 0 ? "/login" : "/",
]);
const shadow = `rules:
  - { name: per-ip, limit: 12, window: 30s, mode: shadow }
  - { name: login, match: { path: /login }, policy: { algorithm: token-bucket, capacity: 2, refill: 1, every: 10s }, mode: shadow }
  - { name: enforced, key: global, limit: 100000, window: 1m }`;

it("measures the shadow rules of an Express app as simulate measures a log with the same requests", async () => {
  let nowMs = startMs;
  const set = rules(shadow);
  const limiter = rateLimit({
    rules: set.rules as never,
    store: memoryStore({ clock: () => nowMs }),
    clientIp: (req: { get(name: string): string | undefined }) => req.get("x-client"),
  });
  const watch = watchShadowRules();
  const app = express();
  app.use(limiter);
  app.use((_req, res) => {
    res.send("ok");
  });
  const server = app.listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    for (const [seconds, client, path] of traffic) {
      nowMs = startMs + seconds * 1000;
      const { status } = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { "x-client": client } });
      expect(status).toBe(200);
    }
    const live = watch.simulation();
    const log = logOf(traffic.map(([seconds, client, path]) => lineAt(client, seconds, `GET ${path} HTTP/1.1`)));
    const replayed = await simulate([log], set);
    expect(live).toMatchObject({ requests: 240, firstMs: replayed.firstMs, lastMs: replayed.lastMs, rejected: 0 });
    expect(live.rules).toEqual(replayed.rules.filter(({ mode }) => mode === "shadow"));
    expect(live.rules.map(({ limited }) => limited > 0)).toEqual([true, true]);
    expect(JSON.stringify(simulationJson(live))).toContain('"name":"login"');
    expect(simulationText(live, (_, text) => text)).toContain("per-ip (shadow)");
    watch.stop();
    await fetch(`http://127.0.0.1:${port}/`, { headers: { "x-client": "192.0.2.1" } });
    expect(watch.simulation()).toEqual(live);
  } finally {
    watch.stop();
    server.close();
    limiter.close();
  }
});

it("measures a rule anew if its algorithm or times change, and not for each plan", async () => {
  const users: RuleUser[] = [];
  const version = (limit: number, window: "1m" | "1h"): RuleSet => ({
    rules: [{ name: "job", key: "global", limit, window, mode: "shadow", plans: { pro: fixedWindow({ limit: 9, window: "1d" }) } }],
  });
  const limit = limitFor<string>({
    rules: {
      current: version(2, "1m"),
      subscribe: (user) => {
        users.push(user);
        return () => undefined;
      },
    },
    store: memoryStore(),
    plan: (plan) => plan,
  });
  const watch = watchShadowRules();
  const requestsAfter = async (...plans: string[]): Promise<unknown> => {
    for (const plan of plans) await limit.check(plan);
    return watch.simulation().rules[0];
  };
  const become = (set: RuleSet): void => {
    for (const activate of users.map(({ prepare }) => prepare(set))) activate();
  };
  try {
    expect(await requestsAfter("free", "pro", "free", "pro")).toMatchObject({ requests: 4, windowMs: 60_000 });
    become(version(3, "1m"));
    expect(await requestsAfter("pro", "free")).toMatchObject({ requests: 6, windowMs: 60_000 });
    become(version(3, "1h"));
    expect(await requestsAfter("pro", "free")).toMatchObject({ requests: 2, windowMs: 3_600_000 });
  } finally {
    watch.stop();
    limit.close();
  }
});

it("bounds the clients that it measures", async () => {
  const limiter = rateLimit({ limit: 1, window: "1m", mode: "shadow", clientIp: (req) => req.ip });
  const watch = watchShadowRules({ maxClients: 2 });
  try {
    for (const ip of ["192.0.2.1", "192.0.2.2", "192.0.2.3"]) {
      await limiter(
        { ip, method: "GET", url: "/", originalUrl: "/", headers: {}, app: { get() {} }, get: () => undefined } as never,
        { setHeader() {}, on() {} } as never,
        () => undefined,
      );
    }
    expect(watch.simulation().rules[0]).toMatchObject({ requests: 3, clients: 2, unmeasured: 1 });
  } finally {
    watch.stop();
    limiter.close();
  }
});
