import { consumeAll, createLimiter, type Decision, type FloodgateEvent, fixedWindow, type Limiter } from "@floodgate/core";
import { inventory } from "@floodgate/core/rules";
import { type RedisCluster, startCluster } from "@floodgate/test-servers";
import calculateSlot from "cluster-key-slot";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { redisStore } from "../src/index.js";
import { type Connected, libraries } from "./libraries.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster({ replicasPerMaster: 0, config: { "cluster-require-full-coverage": "no" } });
});
afterAll(() => cluster?.stop());

describe.each(["ioredis 6", "redis 6"] as const)("one silent node of a Cluster, with %s", (library) => {
  let connected: Connected;
  let limiter: Limiter<"async">;
  let other: Limiter<"async">;
  /** As `limiter`, but it waits for a node that answers late. */
  let patient: Limiter<"async">;
  const breaker: Extract<FloodgateEvent, { type: "breaker" }>[] = [];
  /** Ten keys on the silent node, and ten on others. */
  const [silent, sound]: [string[], string[]] = [[], []];

  beforeAll(async () => {
    connected = await libraries[library].connectCluster(cluster.nodes.map(({ port }) => port));
    const store = redisStore(connected.client, { prefix: library.replace(" ", "-") });
    const options = { policy: fixedWindow({ limit: 1000, window: "365d" }), store } as const;
    limiter = createLimiter({ ...options, name: "api", onEvent: (event) => void (event.type === "breaker" && breaker.push(event)) });
    other = createLimiter({ ...options, name: "other" });
    patient = createLimiter({ ...options, name: "api", timeoutMs: 20_000 });
    for (let i = 0; silent.length < 10 || sound.length < 10; i++) {
      const master = await cluster.masterOf(calculateSlot(`{key-${i}}`));
      const keys = master === cluster.nodes[0] ? silent : sound;
      if (keys.length < 10) keys.push(`key-${i}`);
    }
    for (const key of [...silent, ...sound]) expect((await patient.peek(key)).degraded).toBe(false);
  });
  afterAll(async () => {
    cluster.nodes[0]?.resume();
    for (const each of [limiter, other, patient]) each?.close();
    await connected?.close();
  });

  const decisions = (keys: readonly string[], by = limiter): Promise<Decision[]> => Promise.all(keys.map((key) => by.consume(key)));

  it("opens the breaker of its own keys only, and closes it when it answers again", async () => {
    cluster.nodes[0]?.pause();
    expect((await decisions(silent)).every(({ degraded }) => degraded)).toBe(true);
    expect(breaker.map(({ state }) => state)).toEqual(["open"]);
    expect(breaker[0]?.part).toMatch(/\d/);
    expect(inventory().stores.some((store) => store.breaker === "open")).toBe(true);
    // The others are asked, and answer.
    for (let i = 0; i < 5; i++) expect((await decisions(sound, patient)).map(({ degraded }) => degraded)).toEqual(sound.map(() => false));
    // Several limits: one on the silent node, one on another. The other node's breaker stays closed.
    for (let i = 0; i < 6; i++) {
      const both = [
        { limiter, key: silent[i] as string },
        { limiter: other, key: sound[i] as string },
      ];
      expect((await consumeAll(both)).decision.degraded).toBe(true);
    }
    expect((await decisions(sound, patient)).some(({ degraded }) => degraded)).toBe(false);
    expect(new Set(breaker.map(({ part }) => part)).size).toBe(1);

    cluster.nodes[0]?.resume();
    await vi.waitUntil(async () => (await decisions(silent)).every(({ degraded }) => !degraded), { timeout: 20_000 });
    expect(breaker.at(-1)).toMatchObject({ state: "closed", part: breaker[0]?.part });
  });
});
