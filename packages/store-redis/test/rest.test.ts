import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createLimiter, fixedWindow } from "@floodgate/core";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "@upstash/redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisStore } from "../src/index.js";
import { patienceMs } from "./patient-store.js";
import { startRestServer } from "./rest-server.js";

const policy = fixedWindow({ limit: 3, window: "365d" });
const token = "a token";

let redis: RedisServer;
let rest: Awaited<ReturnType<typeof startRestServer>>;
beforeAll(async () => {
  redis = await startRedis();
  rest = await startRestServer(redis.port, token);
});
afterAll(async () => {
  await rest.stop();
  await redis.stop();
});

describe("a client of @upstash/redis", () => {
  it("counts in Redis over HTTP, exactly, however many requests come at once", async () => {
    const limiters = [0, 1].map(() =>
      createLimiter({ name: "api", policy, store: redisStore(new Redis({ url: rest.url, token })), timeoutMs: patienceMs }),
    );
    const decisions = await Promise.all(Array.from({ length: 40 }, (_, i) => limiters[i % 2]?.consume("key")));
    expect(decisions.filter((decision) => decision?.allowed)).toHaveLength(3);
    expect(decisions.some((decision) => decision?.degraded)).toBe(false);
  });

  it("tells a wrong token as a fault of the store", async () => {
    const store = redisStore(new Redis({ url: rest.url, token: "another" }));
    const errors: unknown[] = [];
    const onEvent = (event: { type: string; error?: unknown }): unknown => event.type === "store-error" && errors.push(event.error);
    const decision = await createLimiter({ name: "api", policy, store, timeoutMs: patienceMs, onEvent }).consume("key");
    expect(decision.degraded).toBe(true);
    expect(errors).toEqual([expect.objectContaining({ message: expect.stringContaining("WRONGPASS") })]);
  });

  it("is asked once, even if the connection breaks before the answer", async () => {
    let requests = 0;
    const breaking = createServer((request) => {
      requests++;
      request.socket.destroy();
    });
    await new Promise<void>((resolve) => breaking.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(breaking.address() as AddressInfo).port}`;
    const limiter = createLimiter({ name: "api", policy, store: redisStore(new Redis({ url, token })), timeoutMs: patienceMs });
    expect((await limiter.consume("key")).degraded).toBe(true);
    expect(requests).toBe(1);
    await new Promise((resolve) => breaking.close(resolve));
  });

  it("gets a clear error for an answer that is not JSON", async () => {
    const page = createServer((_, response) => response.writeHead(502).end("<h1>Bad gateway</h1>"));
    await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
    const limiter = createLimiter({
      name: "api",
      policy,
      store: redisStore(new Redis({ url, token })),
      timeoutMs: patienceMs,
      onEvent: (event) =>
        event.type === "store-error" && expect(String(event.error)).toContain("answered 502 with a body that is not JSON"),
    });
    expect((await limiter.consume("key")).degraded).toBe(true);
    page.closeAllConnections();
    await new Promise((resolve) => page.close(resolve));
  });
});
