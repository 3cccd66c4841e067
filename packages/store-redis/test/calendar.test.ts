import { calendarWindow, createLimiter } from "@floodgate/core";
import { algorithmOf, createLimit } from "@floodgate/core/store";
import type { RedisServer } from "@floodgate/test-servers";
import type { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { argumentsOf } from "../src/algorithms.js";
import { redisStore } from "../src/index.js";
import { keySuffix, parseStoredKey } from "../src/keys.js";
import { general } from "../src/script.js";
import { useRedis } from "./use-redis.js";

let server: RedisServer;
let redis: Redis;
useRedis((started, client) => {
  server = started;
  redis = client;
});
const hourMs = 3_600_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 5 * 24 * hourMs }));
afterEach(() => void vi.useRealTimers());

const serverMs = async (): Promise<number> => {
  const [seconds, micros] = ((await server.command("TIME")) as string[]).map(Number) as [number, number];
  return seconds * 1000 + Math.floor(micros / 1000);
};

test.each(["hour", "day", "month"] as const)("Redis picks the window of a %s, however wrong this process's clock is", async (per) => {
  const policy = calendarWindow({ limit: 2, per, timeZone: "Australia/Adelaide" });
  const store = redisStore(redis, { prefix: `wrong-${per}`, denyCache: false });
  const limiter = createLimiter({ name: "quota", policy, store, timeoutMs: 60_000 });
  const first = await limiter.consume("user");
  const end = algorithmOf(policy).edges?.(policy, await serverMs())[2] as number;
  expect(Math.abs(first.atMs + first.resetAfterMs - end)).toBeLessThan(2);
  const [second, third] = [await limiter.consume("user"), await limiter.charge("user", 5)];
  expect([first.remaining, second.remaining, third]).toEqual([1, 0, 5]);
  const { state } = (await limiter.keyState("user")).states[0];
  expect(state).toMatchObject({ kind: "windows", windows: [{ endMs: end, count: 7 }] });
});

test("a script does nothing if none of the windows that it was sent holds the server's time", async () => {
  const policy = calendarWindow({ limit: 2, per: "hour" });
  const { number, parameters, edgesAt } = argumentsOf(policy);
  const nowMs = await serverMs();
  await server.command("SCRIPT", "LOAD", general.source);
  const ask = async (edges: readonly string[]): Promise<number> => {
    const head = [Number.MAX_SAFE_INTEGER, "", 0, "", 1, number, ...parameters, ...edges];
    return ((await server.command("EVALSHA", general.sha, 1, "{far}:a:cw-h-UTC", ...head, 1, 1)) as unknown[]).length;
  };
  for (const farMs of [-3 * hourMs, 3 * hourMs]) expect(await ask(edgesAt?.(nowMs + farMs) ?? [])).toBe(1);
  for (const nearMs of [-hourMs, 0, hourMs]) expect(await ask(edgesAt?.(nowMs + nearMs) ?? [])).toBeGreaterThan(1);
});

test("the kind of state in a key is read back, with the time zone", () => {
  for (const options of [{ per: "day" as const }, { per: "month" as const, startsOn: 15 }, { per: "week" as const }]) {
    for (const timeZone of ["UTC", "Europe/Berlin", "America/Port-au-Prince", "Etc/GMT-14"]) {
      const { name, policy } = createLimit("quota", calendarWindow({ limit: 1, timeZone, ...options }));
      const key = `p:{user}${keySuffix(name, policy)}`;
      expect(parseStoredKey("p", key)).toEqual({ key: "user", name, holds: "state", stateKind: policy.stateKind });
    }
  }
});
