import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createLimiter, type PolicyOptions } from "@floodgate/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DatabaseDriver, databaseStore } from "../src/index.js";

// Generous, for machines that run other tests at the same time.
export const patienceMs = 120_000;

const processes = 8;
const year = "365d";

/** Policies that admit a burst of 5000, and nothing more for minutes. */
export const policies: readonly PolicyOptions[] = [
  { algorithm: "fixed-window", limit: 5000, window: year },
  { algorithm: "sliding-window-counter", limit: 5000, window: year },
  { algorithm: "sliding-window-counter", limit: 5000, window: "360d", buckets: 6 },
  { algorithm: "sliding-window-log", limit: 5000, window: year },
  { algorithm: "token-bucket", capacity: 5000, refill: 1, every: year },
  { algorithm: "token-bucket", capacity: 5000, refill: 1, every: year, style: "interval" },
  { algorithm: "gcra", limit: 1, window: year, burst: 5000 },
  { algorithm: "leaky-bucket", capacity: 5000, leak: 1, every: "5m" },
];

/** A process that decides on a database. */
export class Worker {
  readonly process: ChildProcess = fork(join(__dirname, "race-worker.mjs"), { execArgv: [] });
  readonly #ended: Promise<unknown> = once(this.process, "exit");

  /** Sends a message, and resolves with the answer. */
  async ask(message: object | string): Promise<unknown> {
    this.process.send(message);
    return this.answer();
  }

  async answer(): Promise<unknown> {
    const ended = this.#ended.then(() => Promise.reject(new Error("A process has ended.")));
    const [answer] = (await Promise.race([once(this.process, "message"), ended])) as [unknown];
    return answer;
  }
}

export interface RaceTarget {
  /** How a worker connects: see `race-worker.mjs`. */
  readonly connection: object;
  readonly driver: DatabaseDriver;
}

/** Lets eight processes send 2,000 requests each on one key, under each kind of policy. */
export function raceCases(target: () => RaceTarget, most = policies.length): void {
  let workers: readonly Worker[] = [];
  beforeAll(async () => {
    workers = Array.from({ length: processes }, () => new Worker());
    await Promise.all(workers.map((worker) => worker.answer()));
  }, patienceMs);
  afterAll(() => {
    for (const { process } of workers) process.disconnect();
  });

  it.each(policies.slice(0, most).map((policy, i) => ({ name: `race-${i}`, policy })))(
    `${processes} processes with 2000 requests each are allowed exactly 5000: $policy`,
    { timeout: patienceMs },
    async (limit) => {
      const { connection, driver } = target();
      const race = (i: number): object => ({ ...connection, limit, requests: 2000, inFlight: 100, denyCache: i % 2 === 1 });
      await Promise.all(workers.map((worker, i) => worker.ask(race(i))));
      const answers = (await Promise.all(workers.map((worker) => worker.ask("go")))) as { allowed: number; degraded: number }[];
      expect(answers.reduce((sum, { allowed }) => sum + allowed, 0)).toBe(5000);
      expect(answers.reduce((sum, { degraded }) => sum + degraded, 0)).toBe(0);
      // The workers' clock: this process's own is shifted in tests.
      const clock = (): number => Math.floor(performance.timeOrigin + performance.now());
      const limiter = createLimiter({ ...limit, store: databaseStore(driver, { clock }), timeoutMs: patienceMs, onStoreError: "deny" });
      expect(await limiter.peek("one")).toMatchObject({ remaining: 0, degraded: false });
    },
  );
}
