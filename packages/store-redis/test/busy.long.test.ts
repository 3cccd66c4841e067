import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { createLimiter, type FloodgateEvent, fixedWindow, type Limiter, slidingWindowCounter } from "@floodgate/core";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { redisStore } from "../src/index.js";
import { type Connected, libraries } from "./libraries.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.stop());

/** Blocks the event loop. */
function compute(ms: number): void {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs; );
}

/** The responses of an HTTP server with a CPU-bound handler to concurrent requests. */
async function answers(limiter: Limiter<"async">, requests: number, handlerMs: number): Promise<Record<number, number>> {
  const app = createServer(async (_request, response) => {
    const { allowed } = await limiter.consume("everybody");
    if (allowed) compute(handlerMs);
    response.writeHead(allowed ? 200 : 429).end();
  });
  await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
  const { port } = app.address() as AddressInfo;
  const statuses = await Promise.all(
    Array.from(
      { length: requests },
      () =>
        new Promise<number>((resolve, reject) => {
          get({ host: "127.0.0.1", port, agent: false }, (response) => {
            response.resume();
            response.on("end", () => resolve(response.statusCode as number));
          }).on("error", reject);
        }),
    ),
  );
  app.close();
  const counts: Record<number, number> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

describe.each(Object.entries(libraries))("a busy process with %s", (library, { connect }) => {
  let connected: Connected;
  beforeEach(async () => {
    connected = await connect(server.port);
  });
  afterEach(() => connected?.close());

  it.each([2, 40])("allows exactly the limit and reports no store error when each handler blocks for %i ms", async (handlerMs) => {
    // A load of a second or two, which is many timeouts.
    const limit = handlerMs > 10 ? 50 : 100;
    const policies = [fixedWindow({ limit, window: "365d" }), slidingWindowCounter({ limit, window: "365d" })];
    for (const policy of handlerMs < 10 ? policies : policies.slice(1)) {
      const events: FloodgateEvent[] = [];
      const limiter = createLimiter({
        name: `${library} ${handlerMs} ${policy.stateKind}`,
        policy,
        store: redisStore(connected.client),
        onEvent: (event) => void (event.type === "allowed" || event.type === "limited" || event.type === "request" || events.push(event)),
      });
      expect(await answers(limiter, 4 * limit, handlerMs)).toEqual({ 200: limit, 429: 3 * limit });
      expect(events).toEqual([]);
    }
  });

  it("notices when Redis stops", async () => {
    const events: FloodgateEvent[] = [];
    const limiter = createLimiter({
      name: `${library} stopped`,
      policy: fixedWindow({ limit: 100, window: "365d" }),
      store: redisStore(connected.client),
      onStoreError: "deny",
      onEvent: (event) => void events.push(event),
    });
    expect(await limiter.consume("everybody")).toMatchObject({ allowed: true, degraded: false });
    server.pause();
    let done = false;
    const keepBusy = (): void => {
      if (done) return;
      compute(20);
      setTimeout(keepBusy, 0);
    };
    keepBusy();
    const decisions = await Promise.all(Array.from({ length: 20 }, () => limiter.consume("everybody"))).finally(() => server.resume());
    done = true;
    expect(decisions).toMatchObject(Array(20).fill({ allowed: false, degraded: true }));
    expect(events).toContainEqual({ type: "breaker", state: "open" });
    expect(events).toContainEqual({ type: "store-error", error: expect.objectContaining({ code: "FLOODGATE_STORE_TIMEOUT" }) });
  });
});
