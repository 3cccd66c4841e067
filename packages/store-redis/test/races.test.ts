import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createLimiter, type PolicyOptions } from "@floodgate/core";
import { startCluster, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { redisStore } from "../src/index.js";
import { type Connected, libraries } from "./libraries.js";

// Generous, for machines that run other tests at the same time.
const patienceMs = 60_000;
vi.setConfig({ testTimeout: patienceMs, hookTimeout: patienceMs });

const processes = allRuns ? 8 : 4;
const requests = allRuns ? 2000 : 1000;
/** A burst, and the part of it that is under two limits. */
const [burst, lessBurst] = allRuns ? [5000, 3000] : [1250, 750];
const year = "365d";

/** Policies that admit a burst and nothing more for minutes. */
const policies: readonly PolicyOptions[] = [
  { algorithm: "fixed-window", limit: burst, window: year },
  { algorithm: "sliding-window-counter", limit: burst, window: year },
  { algorithm: "sliding-window-counter", limit: burst, window: "360d", buckets: 6 },
  { algorithm: "sliding-window-log", limit: burst, window: year },
  { algorithm: "token-bucket", capacity: burst, refill: 1, every: year },
  { algorithm: "token-bucket", capacity: burst, refill: 1, every: year, style: "interval" },
  { algorithm: "gcra", limit: 1, window: year, burst },
  { algorithm: "leaky-bucket", capacity: burst, leak: 1, every: "5m" },
];

interface NamedLimit {
  readonly name: string;
  readonly policy: PolicyOptions;
}

let limits = 0;
const named = (policy: PolicyOptions): NamedLimit => ({ name: `limit-${limits++}`, policy });

let workers: readonly ChildProcess[] = [];
let ended: Promise<never>;
beforeAll(async () => {
  workers = Array.from({ length: processes }, () => fork(join(__dirname, "race-worker.mjs"), { execArgv: [] }));
  ended = Promise.race(workers.map((worker) => once(worker, "exit"))).then(() => Promise.reject(new Error("A process has ended.")));
  ended.catch(() => undefined);
  await Promise.all(workers.map(answerOf));
});
afterAll(() => {
  for (const worker of workers) worker.disconnect();
});

/** Starts all processes at once, and returns the number of allowed requests. Every other process uses the deny cache. */
async function race(ports: readonly number[], limits: readonly NamedLimit[]): Promise<number> {
  await tell((i) => ({ ports, limits, key: "one", requests, inFlight: 100, denyCache: i % 2 === 1 }));
  const allowed = (await tell(() => "go")) as number[];
  return allowed.reduce((sum, count) => sum + count, 0);
}

function tell(message: (worker: number) => object | string): Promise<unknown[]> {
  const answers = workers.map(answerOf);
  for (const [i, worker] of workers.entries()) worker.send(message(i));
  return Promise.all(answers);
}

async function answerOf(worker: ChildProcess): Promise<unknown> {
  const [answer] = await Promise.race([once(worker, "message"), ended]);
  return answer;
}

describe.each<[string, readonly PolicyOptions[], () => Promise<{ ports: number[]; stop(): Promise<void> }>]>([
  [
    "one server",
    policies,
    async () => {
      const server = await startRedis();
      return { ports: [server.port], stop: () => server.stop() };
    },
  ],
  [
    "a Cluster",
    policies.slice(0, 1),
    async () => {
      const cluster = await startCluster({ replicasPerMaster: 0 });
      return { ports: cluster.nodes.map(({ port }) => port), stop: () => cluster.stop() };
    },
  ],
])(`${processes} processes with ${requests} requests each on %s`, (_, policies, start) => {
  let ports: number[];
  let stop: () => Promise<void>;
  let connected: Connected;
  beforeAll(async () => {
    ({ ports, stop } = await start());
    const { connect, connectCluster } = libraries["ioredis 6"];
    connected = await (ports.length > 1 ? connectCluster(ports) : connect(ports[0] as number));
  });
  afterAll(async () => {
    await connected?.close();
    await stop?.();
  });

  async function remaining(limit: NamedLimit): Promise<number> {
    const store = redisStore(connected.client);
    const decision = await createLimiter({ ...limit, store, timeoutMs: patienceMs, onStoreError: "deny" }).peek("one");
    expect(decision.degraded).toBe(false);
    return decision.remaining;
  }

  it.each(policies)("are allowed exactly as often as the policy says: %o", async (policy) => {
    const limit = named(policy);
    expect(await race(ports, [limit])).toBe(burst);
    expect(await remaining(limit)).toBe(0);
  });

  it("are charged under two limits or under none", async () => {
    const two = [
      named({ algorithm: "gcra", limit: 1, window: year, burst: lessBurst }),
      named({ algorithm: "sliding-window-log", limit: burst, window: year }),
    ];
    expect(await race(ports, two)).toBe(lessBurst);
    expect(await Promise.all(two.map(remaining))).toEqual([0, burst - lessBurst]);
  });
});
