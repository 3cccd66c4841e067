import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createLimiter, type Limiter, type PolicyOptions } from "@floodgate/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { DatabaseServer } from "../../../tools/test-servers/src/index.js";
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

let targets = 0;

/** Lets eight processes send 2,000 requests each on one key, under each kind of policy, and on many keys. */
export function raceCases(target: () => RaceTarget, { most = policies.length } = {}): void {
  const prefix = `race-${targets++}`;
  let workers: readonly Worker[] = [];
  beforeAll(async () => {
    workers = Array.from({ length: processes }, () => new Worker());
    await Promise.all(workers.map((worker) => worker.answer()));
  }, patienceMs);
  afterAll(() => {
    for (const { process } of workers) process.disconnect();
  });

  async function race(
    limit: { readonly name: string; readonly policy: PolicyOptions },
    keys: readonly string[],
    allowed: number,
  ): Promise<void> {
    const { connection, driver } = target();
    const race = (i: number): object => ({ ...connection, limit, requests: 2000, inFlight: 100, keys, denyCache: i % 2 === 1 });
    await Promise.all(workers.map((worker, i) => worker.ask(race(i))));
    const answers = (await Promise.all(workers.map((worker) => worker.ask("go")))) as { allowed: number; degraded: number }[];
    expect(answers.reduce((sum, { allowed }) => sum + allowed, 0)).toBe(allowed);
    expect(answers.reduce((sum, { degraded }) => sum + degraded, 0)).toBe(0);
    // The workers' clock: this process's own is shifted in tests.
    const clock = (): number => Math.floor(performance.timeOrigin + performance.now());
    const limiter = createLimiter({ ...limit, store: databaseStore(driver, { clock }), timeoutMs: patienceMs, onStoreError: "deny" });
    for (const key of keys) expect(await limiter.peek(key)).toMatchObject({ remaining: 0, degraded: false });
  }

  it.each(policies.slice(0, most).map((policy, i) => ({ name: `${prefix}-${i}`, policy })))(
    `${processes} processes with 2000 requests each are allowed exactly 5000: $policy`,
    { timeout: patienceMs },
    (limit) => race(limit, ["one"], 5000),
  );

  it(`${processes} processes with 2000 requests each, on 50 keys, are allowed exactly 100 on each`, { timeout: patienceMs }, () => {
    const keys = Array.from({ length: 50 }, (_, i) => `key-${i}`);
    return race({ name: `${prefix}-keys`, policy: { algorithm: "fixed-window", limit: 100, window: year } }, keys, 5000);
  });
}

const most = 100_000;
const killed = (name: string) => ({ name, policy: { algorithm: "fixed-window", limit: most, window: year } as const });

function limiterOf({ driver }: RaceTarget, name: string): Limiter<"async"> {
  return createLimiter({ ...killed(name), store: databaseStore(driver), timeoutMs: patienceMs, onStoreError: "deny" });
}

/** Kills a process while it writes. */
export function clientKillCase(target: () => RaceTarget): void {
  it("counts each request that passed, after a client was killed while it wrote", { timeout: patienceMs }, async () => {
    const worker = new Worker();
    await worker.answer();
    await worker.ask({ ...target().connection, limit: killed("killed-client"), requests: most, inFlight: 8, tell: true });
    worker.process.send("go");
    let told = 0;
    worker.process.on("message", (message: { allowed: number }) => {
      told = message.allowed;
      if (told === 500) worker.process.kill("SIGKILL");
    });
    // It may have exited before all that it has sent is read.
    await once(worker.process, "disconnect");
    const { used, degraded } = await limiterOf(target(), "killed-client").peek("one");
    expect(degraded).toBe(false);
    expect(used).toBeGreaterThanOrEqual(told);
    // What was in flight may be counted too.
    expect(used - told).toBeLessThanOrEqual(64);
  });
}

/** Kills the server while this process writes. */
export function serverKillCase(target: () => RaceTarget, server: () => Pick<DatabaseServer, "kill" | "restart">): void {
  it("counts each request that passed, after the server was killed while it wrote, and decides again when it is back", {
    timeout: patienceMs,
  }, async () => {
    const limiter = limiterOf(target(), "killed-server");
    let allowed = 0;
    let asked = 0;
    let failed = 0;
    const askInTurn = async (): Promise<void> => {
      while (failed === 0) {
        asked++;
        const decision = await limiter.consume("one");
        if (decision.degraded) failed++;
        else if (decision.allowed) allowed++;
      }
    };
    const asking = Array.from({ length: 8 }, askInTurn);
    while (allowed < 200) await new Promise((resolve) => setTimeout(resolve, 5));
    await server().kill();
    await Promise.all(asking);
    await server().restart();
    let seen = await limiter.peek("one");
    // The circuit breaker finds the server by itself.
    while (seen.degraded) seen = await new Promise((resolve) => setTimeout(() => resolve(limiter.peek("one")), 20));
    const { used } = seen;
    expect(used).toBeGreaterThanOrEqual(allowed);
    expect(used).toBeLessThanOrEqual(asked);
  });
}
