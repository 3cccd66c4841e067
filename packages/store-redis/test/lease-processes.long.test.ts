import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createLimiter, type Decision, fixedWindow, type Limiter } from "@floodgate/core";
import type { RedisServer } from "@floodgate/test-servers";
import type { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type RedisStore, redisStore } from "../src/index.js";
import { KnownLimits } from "../src/limits.js";
import { limitOf, patienceMs, yearly } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

vi.setConfig({ testTimeout: 60_000 });

const lifeMs = 10;

let server: RedisServer;
let redis: Redis;
useRedis((started, connected) => {
  server = started;
  redis = connected;
});

afterEach(() => {
  vi.restoreAllMocks();
});

describe("a process with leases", () => {
  let store: RedisStore;
  let limiter: Limiter<"async">;
  let prefixes = 0;
  beforeEach(() => {
    store = redisStore(redis, { lease: { lifeMs: 10_000 }, prefix: `process-${prefixes++}` });
    limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 1_000_000, window: "365d" }), store, timeoutMs: patienceMs });
  });
  afterEach(() => limiter.close());

  const ask = () => store.consume(limiter.limit, "hot", 1, patienceMs) as Decision | Promise<Decision>;

  /** Asks until units are leased, so that the next request is decided here. */
  async function lease(): Promise<void> {
    for (;;) {
      const answer = ask();
      if (!(answer instanceof Promise)) return;
      await answer;
    }
  }

  it("spends nothing of a lease that ended while the event loop was blocked", async () => {
    const brief = redisStore(redis, { lease: { lifeMs }, prefix: `process-${prefixes++}` });
    store = brief;
    await lease();
    const until = performance.now() + 2 * lifeMs;
    while (performance.now() < until);
    const answer = ask();
    expect(answer).toBeInstanceOf(Promise);
    await answer;
  });

  it("spends nothing after the system's clock has jumped past the end of the lease, as it does after a suspension", async () => {
    await lease();
    expect(ask()).not.toBeInstanceOf(Promise);
    const jumpedMs = Date.now() + 10_001;
    vi.spyOn(Date, "now").mockReturnValue(jumpedMs);
    const answer = ask();
    expect(answer).toBeInstanceOf(Promise);
    await answer;
  });

  it("goes on to spend while the system's clock steps back: the monotonic clock ends the lease", async () => {
    await lease();
    const backMs = Date.now() - 3_600_000;
    vi.spyOn(Date, "now").mockReturnValue(backMs);
    expect(ask()).not.toBeInstanceOf(Promise);
    const laterMs = performance.now() + 10_000;
    vi.spyOn(performance, "now").mockReturnValue(laterMs);
    expect(ask()).toBeInstanceOf(Promise);
  });
});

describe("another process with leases", () => {
  let worker: ChildProcess;
  const start = (task: string): void => {
    worker = fork(join(__dirname, "lease-worker.mjs"), [task, String(server.port)], {
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
  };
  afterEach(() => {
    worker.kill("SIGKILL");
  });

  it("ends by itself although it holds leases: their timer does not keep it alive", async () => {
    start("exit");
    let output = "";
    worker.stderr?.on("data", (text) => {
      output += text;
    });
    const [code] = await once(worker, "exit");
    expect([code, output]).toEqual([0, ""]);
  });

  it("spends nothing of a lease that ended while it was stopped", async () => {
    start("stop");
    await once(worker, "message");
    for (let i = 0; i < 5; i++) {
      worker.kill("SIGSTOP");
      await wait(3 * lifeMs);
      worker.kill("SIGCONT");
      worker.send("report");
      const [oldestMs] = await once(worker, "message");
      expect(oldestMs).toBeLessThanOrEqual(lifeMs);
    }
  });
});

describe("the counters of how busy keys are", () => {
  it("take a few megabytes for any number of keys", () => {
    setFlagsFromString("--expose_gc");
    const collect = runInNewContext("gc") as () => void;
    const table = new KnownLimits(undefined, 100).get(limitOf(yearly(1))).lease;
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 300_000; i++) table?.of(`key-${i}`, 1).count(1, 1, 100);
    collect();
    // 300,000 counters would take 60 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
    expect(table?.of("key-299999", 2).units).toBe(1);
  });
});
