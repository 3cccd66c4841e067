import {
  consumeAll,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  leakyBucket,
  type Policy,
  type Store,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import type { Mode } from "@floodgate/core/store";
import { type MemoryStore, memoryStore } from "@floodgate/store-memory";
import { redisStore } from "@floodgate/store-redis";
import { type App, appOf, close, type Framework, type Limits, listen } from "../apps.js";
import { type Client, connect } from "../faults/clients.js";
import { Browser } from "../http.js";

/** Every algorithm, with windows much shorter than the soak. */
const policies: readonly Policy[] = [
  fixedWindow({ limit: 10, window: "500ms" }),
  slidingWindowLog({ limit: 10, window: "500ms" }),
  slidingWindowLog({ limit: 10, window: "500ms", countRejected: true }),
  slidingWindowCounter({ limit: 10, window: "500ms", buckets: 5 }),
  tokenBucket({ capacity: 10, refill: 10, every: "500ms" }),
  tokenBucket({ capacity: 10, refill: 10, every: "500ms", style: "interval" }),
  leakyBucket({ capacity: 10, leak: 10, every: "500ms" }),
  gcra({ limit: 10, window: "500ms" }),
];

/** A policy function that returns an equal policy for each request. */
const plan = async (): Promise<Policy> => fixedWindow({ limit: 1000, window: "500ms" });

/** Requests per limiter and round, and requests in flight. */
const perRound = { memory: 10_000, redis: 3000, requests: 300, atOnce: 60 };

/** Small bounds fill up early, so later growth is a leak. */
const few = { memory: 2000, fallback: 500, denied: 100 };

/** Mixed traffic: all algorithms, in memory and in Redis, by limiters and through each framework, from recurring and new clients. */
export class Traffic {
  readonly memory: MemoryStore = memoryStore({ maxKeys: few.memory });
  readonly clients: readonly Client[];
  /** Decisions so far. */
  decisions = 0;
  /** Requests without a response whose client had not disconnected. */
  lost = 0;
  readonly #inMemory: readonly Limiter<"sync">[];
  readonly #inRedis: readonly (readonly Limiter<"async">[])[];
  readonly #apps: App[] = [];
  readonly #ports: number[] = [];
  readonly #browser = new Browser();

  private constructor(redisPort: number) {
    this.clients = connect(redisPort);
    this.#inMemory = limitersOf(this.memory);
    this.#inRedis = this.clients.map(({ redis }) => limitersOf(redisStore(redis, { denyCache: { maxKeys: few.denied } })));
  }

  static async start(redisPort: number): Promise<Traffic> {
    const traffic = new Traffic(redisPort);
    const stores = [traffic.memory, ...traffic.#inRedis.map(([limiter]) => (limiter as Limiter).store)];
    for (const store of stores) {
      for (const framework of ["Express", "Koa", "Hono"] as const) await traffic.#serve(framework, store);
    }
    return traffic;
  }

  async #serve(framework: Framework, store: Store): Promise<void> {
    const limits: Limits = {
      store,
      rules: [
        { name: "banned", key: "header:x-client", limit: 100, window: "1s", ban: { after: 50, within: "1s", for: "2s" }, settle: () => 2 },
        { name: "held", key: "header:x-client", policy: leakyBucket({ capacity: 5, leak: 100, every: "1s" }) },
        { name: "planned", key: async () => "everybody", policy: plan },
        { name: "shadow", key: ["ip", "global"], policy: fixedWindow({ limit: 1, window: "500ms" }), mode: "shadow" },
      ],
      refundWhen: (status) => status !== 200,
      onStoreError: fallback(),
      onEvent: () => undefined,
    };
    const app = appOf[framework](limits);
    this.#apps.push(app);
    this.#ports.push(await listen(app.server));
  }

  /** Makes about 14,000 decisions. */
  async round(): Promise<void> {
    const redis = (): readonly Limiter<"async">[] => pick(this.#inRedis);
    await inParallel(perRound.memory, 1, () => this.#use(this.#inMemory));
    await inParallel(perRound.redis, perRound.atOnce, () => this.#use(redis()));
    await inParallel(perRound.requests, perRound.atOnce, () => this.#request());
  }

  async close(): Promise<void> {
    this.#browser.close();
    for (const { server } of this.#apps) close(server);
    await Promise.all(this.clients.map((client) => client.close()));
  }

  async #use<M extends Mode>(limiters: readonly Limiter<M>[]): Promise<void> {
    const key = this.#key();
    const limiter = pick(limiters);
    this.decisions++;
    const decision = await limiter.consume(key, { cost: 1 + Math.floor(3 * Math.random()) });
    if (chance(0.1)) await limiter.peek(key);
    // Fails while Redis is down, which is expected.
    if (chance(0.1)) await Promise.resolve(limiter.refund(key, decision)).catch(() => undefined);
    if (chance(0.1)) await Promise.resolve(limiter.settle(key, decision, Math.floor(5 * Math.random()))).catch(() => undefined);
    if (chance(0.05)) await Promise.resolve(limiter.reset(key)).catch(() => undefined);
    if (!chance(0.1)) return;
    this.decisions++;
    const other = limiters[(limiters.indexOf(limiter) + 1) % limiters.length] as Limiter<M>;
    await consumeAll<M>([
      { limiter, key },
      { limiter: other, key: "global" },
    ]);
  }

  async #request(): Promise<void> {
    this.decisions++;
    const impatient = chance(0.05);
    const answer = await this.#browser.get(pick(this.#ports), this.#key(), impatient ? 2 : undefined);
    if (typeof answer === "string" && !impatient) this.lost++;
  }

  /** One of a hundred recurring clients, or a new one. */
  #key(): string {
    return chance(0.5) ? `client-${Math.floor(100 * Math.random())}` : `new-${this.decisions}`;
  }
}

/** A separate fallback for each store, because a name on a fallback belongs to one store. */
function fallback(): MemoryStore {
  return memoryStore({ maxKeys: few.fallback });
}

function limitersOf<M extends Mode>(store: Store<M>): Limiter<M>[] {
  const onStoreError = fallback();
  return policies.map((policy, i) => createLimiter({ name: `limit-${i}`, policy, store, onStoreError }));
}

/** Runs `run` `times` times, with limited concurrency. */
async function inParallel(times: number, atOnce: number, run: () => Promise<void>): Promise<void> {
  let left = times;
  const lane = async (): Promise<void> => {
    while (left-- > 0) await run();
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

function pick<T>(list: readonly T[]): T {
  return list[Math.floor(list.length * Math.random())] as T;
}

function chance(share: number): boolean {
  return Math.random() < share;
}
