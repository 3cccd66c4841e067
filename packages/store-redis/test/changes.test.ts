import {
  concurrency,
  type Decision,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { asCharge, createLimit, type Limit } from "@floodgate/core/store";
import { type RedisCluster, type RedisServer, startCluster } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { Cluster, Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { Changes } from "../src/changes.js";
import type { RedisClient } from "../src/clients/client.js";
import { type RedisStoreOptions, redisStore } from "../src/index.js";
import { limitOf, patienceMs, yearly } from "./patient-store.js";
import { tenAnHour } from "./policies.js";
import { useRedis } from "./use-redis.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const maxAgeMs = 1000;
/** A bucket flows faster once a larger plan has charged it, so its rejections are asked for each second. */
const lasting = tenAnHour.filter(({ algorithm }) => algorithm.includes("window"));

let server: RedisServer;
useRedis((started) => {
  server = started;
});
let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster?.stop());

let nowMs = 1_789_948_800_000;
let prefixes = 0;
let prefix: string;
const open: (Redis | Cluster)[] = [];
beforeEach(() => {
  prefix = `changes-${prefixes++}`;
});
afterEach(() => {
  for (const client of open.splice(0)) client.disconnect();
});

/** A process with a connection of its own, under the clock of the test. */
class Process {
  readonly client: Redis | Cluster;
  readonly store: ReturnType<typeof redisStore>;
  /** The announcements and reads that it has sent. */
  sent = 0;

  constructor(onCluster = false, options: RedisStoreOptions = {}) {
    this.client = onCluster ? new Cluster(cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port }))) : new Redis(server.port);
    open.push(this.client);
    const evaluate = this.client.eval.bind(this.client) as (...args: unknown[]) => Promise<unknown>;
    this.client.eval = ((...args: unknown[]) => {
      if (args[2] === `${prefix}:changes`) this.sent++;
      return evaluate(...args);
    }) as never;
    this.store = redisStore(this.client, { prefix, clock: () => nowMs, denyCache: { maxAgeMs }, ...options });
  }

  /** Consumes, and waits until everything that was sent meanwhile is answered. */
  async consume(limit: Limit, key: string, cost = 1): Promise<{ readonly decision: Decision; readonly isCached: boolean }> {
    const answer = this.store.consume(limit, key, cost, patienceMs);
    const decision = await answer;
    await this.answered();
    return { decision, isCached: !(answer instanceof Promise) };
  }

  async answered(): Promise<void> {
    await new Promise(setImmediate);
    // Over the same connection as announcements and reads.
    await this.client.get(`${prefix}:changes`).catch(() => undefined);
    await new Promise(setImmediate);
  }
}

/** A process that has heard for long enough that nobody announces anything. */
async function listening(onCluster = false): Promise<Process> {
  const process = new Process(onCluster);
  const limit = limitOf(yearly(1));
  for (let i = 0; i < 2; i++) await process.consume(limit, "first");
  nowMs += 1200;
  return process;
}

/** Asserts that a process rejects a key by its cache for so long. */
async function expectCached(process: Process, limit: Limit, key: string, forMs: number): Promise<void> {
  for (let ms = 0; ms < forMs; ms += 500) {
    nowMs += 500;
    expect(await process.consume(limit, key)).toMatchObject({ isCached: true, decision: { allowed: false } });
  }
}

/** After how much time a process asks Redis for a key again. */
async function askedAfterMs(process: Process, limit: Limit, key: string): Promise<{ readonly ms: number; readonly decision: Decision }> {
  for (let ms = 0; ; ms += 100) {
    const { decision, isCached } = await process.consume(limit, key);
    if (!isCached) return { ms, decision };
    nowMs += 100;
  }
}

interface Change {
  /** How the key gets rejected. Default: its units are used up. */
  readonly deny?: (other: Process, limit: Limit, key: string) => Promise<unknown>;
  readonly free: (other: Process, limit: Limit, key: string, charge: Decision) => Promise<unknown>;
}

const hourMs = 3_600_000;
const changes: Record<string, Change> = {
  reset: { free: ({ store }, limit, key) => store.reset(limit, key, patienceMs) },
  refund: { free: ({ store }, limit, key, charge) => store.settle(limit, key, asCharge(charge), 0, patienceMs) },
  "settlement to less": { free: ({ store }, limit, key, charge) => store.settle(limit, key, asCharge(charge), 7, patienceMs) },
  "settlement by a receipt": {
    free: ({ store }, limit, key, charge) =>
      store.settle(limit, key, { ...asCharge(charge), receipt: { id: "r", untilMs: nowMs + hourMs } }, 7, patienceMs),
  },
  unblock: {
    deny: ({ store }, { name }, key) => store.block(name, key, hourMs, "block", patienceMs),
    free: ({ store }, { name }, key) => store.unblock(name, key, patienceMs),
  },
  "shorter block": {
    deny: ({ store }, { name }, key) => store.block(name, key, hourMs, "block", patienceMs),
    free: ({ store }, { name }, key) => store.block(name, key, 1, "block", patienceMs),
  },
  "reset, which lifts a ban,": {
    deny: ({ store }, { name }, key) => store.block(name, key, hourMs, "ban", patienceMs),
    free: ({ store }, limit, key) => store.reset(limit, key, patienceMs),
  },
};

describe.each([
  ["a server", false],
  ["a Cluster", true],
])("on %s, a rejection is repeated without Redis", (_, onCluster) => {
  describe.each(Object.entries(changes))("until another process's %s", (name, { deny, free }) => {
    it.each(lasting)("which is noticed within maxAgeMs: $stateKind", async (policy) => {
      const [here, there] = [await listening(onCluster), new Process(onCluster)];
      const limit = limitOf(policy);
      const charge = (await there.consume(limit, "k", deny === undefined ? 10 : 1)).decision;
      await deny?.(there, limit, "k");
      // Reads of what was announced by `deny`, and again once it is too old to matter.
      for (let i = 0; i < 2; i++) {
        await here.consume(limit, "other", 11);
        nowMs += 1200;
      }
      expect(await here.consume(limit, "k")).toMatchObject({ isCached: false, decision: { allowed: false } });
      await expectCached(here, limit, "k", 5000);
      await free(there, limit, "k", charge);
      await there.answered();
      const { ms, decision } = await askedAfterMs(here, limit, "k");
      expect(ms).toBeLessThanOrEqual(maxAgeMs + 100);
      expect(decision.allowed, name).toBe(true);
    });
  });

  it("until another process gives back leased units", async () => {
    const [here, there] = [await listening(onCluster), new Process(onCluster, { lease: { lifeMs: 10_000 } })];
    const limit = limitOf(yearly(1000));
    for (let i = 0; i < 30; i++) await there.consume(limit, "k");
    // Earlier leases have ended, and that is no news any more.
    const { remaining } = (await here.consume(limit, "k")).decision;
    await here.consume(limit, "k", remaining + 1);
    nowMs += 1200;
    await here.consume(limit, "k", remaining);
    expect(await here.consume(limit, "k")).toMatchObject({ isCached: false, decision: { allowed: false } });
    await expectCached(here, limit, "k", 3000);
    await there.store.releaseLeases();
    const { ms, decision } = await askedAfterMs(here, limit, "k");
    expect(ms).toBeLessThanOrEqual(maxAgeMs + 100);
    expect(decision.allowed).toBe(true);
  });

  it("until Redis loses its data", async () => {
    const here = await listening(onCluster);
    const limit = limitOf(yearly(1));
    for (let i = 0; i < 2; i++) await here.consume(limit, "k");
    await expectCached(here, limit, "k", 3000);
    for (const node of onCluster ? cluster.nodes.slice(0, 3) : [server]) await node.command("FLUSHALL");
    const { ms, decision } = await askedAfterMs(here, limit, "k");
    expect(ms).toBeLessThanOrEqual(maxAgeMs + 100);
    expect(decision.allowed).toBe(true);
  });

  it("for a minute at most, and then asked for again", async () => {
    const here = await listening(onCluster);
    const limit = limitOf(yearly(1));
    for (let i = 0; i < 2; i++) await here.consume(limit, "k");
    await expectCached(here, limit, "k", 60_000);
    nowMs += 1;
    expect(await here.consume(limit, "k")).toMatchObject({ isCached: false, decision: { allowed: false } });
  });
});

it("A refund across the slots of a Cluster is announced", async () => {
  const [here, there] = [await listening(true), new Process(true)];
  const [limit, wide] = [limitOf(yearly(1)), limitOf(yearly(10))];
  for (const key of ["a", "a", "b"]) await here.consume(limit, key);
  await expectCached(here, limit, "a", 3000);
  const checks = ["a", "b", "c", "d"].map((key) => ({ limit: key === "b" ? limit : wide, key, cost: 1 }));
  expect((await there.store.consumeAll(checks, patienceMs)).map(({ allowed }) => allowed)).toEqual([true, false, true, true]);
  expect((await askedAfterMs(here, limit, "a")).ms).toBeLessThanOrEqual(maxAgeMs + 100);
});

describe("a rejection is not asked for again", () => {
  it.each<[string, (other: Process, limit: Limit) => Promise<unknown>]>([
    ["requests", (other) => other.consume(limitOf(yearly(2)), "other")],
    [
      "a settlement to more",
      async ({ store }, limit) => {
        const charge = await store.consume(limit, "other", 1, patienceMs);
        await store.settle(limit, "other", asCharge(charge), 2, patienceMs);
      },
    ],
    ["a ban", ({ store }, { name }) => store.block(name, "other", hourMs, "ban", patienceMs)],
    [
      "a slot that is given back",
      async ({ store }) => {
        const slots = limitOf(concurrency({ limit: 1, hold: "1h" }));
        const charge = await store.consume(slots, "other", 1, patienceMs);
        await store.settle(slots, "other", asCharge(charge), 0, patienceMs);
      },
    ],
  ])("because of another process's %s", async (_, act) => {
    const [here, there] = [await listening(), new Process()];
    const limit = limitOf(yearly(2));
    for (let i = 0; i < 3; i++) await here.consume(limit, "k");
    await act(there, limit);
    await there.answered();
    expect(there.sent).toBe(0);
    await expectCached(here, limit, "k", 3000);
  });

  it("because of this process's refund of another key", async () => {
    const here = await listening();
    const limit = limitOf(yearly(2));
    for (let i = 0; i < 3; i++) await here.consume(limit, "k");
    for (let i = 0; i < 5; i++) {
      const { decision } = await here.consume(limit, "other");
      await here.store.settle(limit, "other", asCharge(decision), 0, patienceMs);
      await expectCached(here, limit, "k", 1000);
    }
  });
});

describe("a rejection is used for maxAgeMs only", () => {
  const usedMs = async (here: Process, policy: Policy = yearly(1)): Promise<number> => {
    const limit = limitOf(policy);
    await here.consume(limit, "k", policy.quota);
    expect((await here.consume(limit, "k")).decision.allowed).toBe(false);
    return (await askedAfterMs(here, limit, "k")).ms;
  };

  it.each([
    tokenBucket({ capacity: 1, refill: 1, every: "1h" }),
    tokenBucket({ capacity: 1, refill: 1, every: "1h", style: "interval" }),
    gcra({ limit: 1, window: "1h" }),
    leakyBucket({ capacity: 1, leak: 1, every: "1h" }),
  ])("of $stateKind, because it flows faster under a larger plan", async (policy) => {
    expect(await usedMs(await listening(), policy)).toBe(maxAgeMs + 100);
  });

  it("within a second after another process's announcement, which covers its changes of that second", async () => {
    const [here, there] = [await listening(), new Process()];
    await there.store.reset(limitOf(yearly(1)), "other", patienceMs);
    nowMs += 800;
    expect(await usedMs(here)).toBe(maxAgeMs + 100);
    // That was asked for later.
    expect(await usedMs(here)).toBeGreaterThan(3000);
  });

  it.each<[string, (client: Redis) => Promise<unknown>]>([
    ["another program has written its key", (client) => client.del(`${prefix}:changes`).then(() => client.lpush(`${prefix}:changes`, "x"))],
    [
      "the reads fail",
      async (client) => {
        client.eval = (() => Promise.reject(new Error("no permission"))) as never;
      },
    ],
    [
      "the reads are not answered",
      async (client) => {
        client.eval = (() => new Promise(() => undefined)) as never;
      },
    ],
  ])("while %s", async (_, fail) => {
    const here = await listening();
    await fail(here.client as Redis);
    expect(await usedMs(here)).toBe(maxAgeMs + 100);
  });

  it("if maxAgeMs is below a second, and nothing is read then", async () => {
    const here = new Process(false, { denyCache: { maxAgeMs: 999 } });
    expect(await usedMs(here)).toBe(1000);
    expect(here.sent).toBe(0);
  });
});

it("A process announces once a second, however much it gives back, and reads once in three quarters of maxAgeMs, while it rejects", async () => {
  const [here, there] = [await listening(), new Process()];
  const limit = limitOf(yearly(1));
  for (const key of ["a", "a"]) await here.consume(limit, key);
  here.sent = 0;
  for (let i = 0; i < 300; i++) {
    nowMs += 10;
    const { decision } = await there.consume(limit, "b");
    await there.store.settle(limit, "b", asCharge(decision), 0, patienceMs);
    await here.consume(limit, "a");
  }
  expect(there.sent).toBe(3);
  expect(here.sent).toBe(3);
  nowMs += 10_000;
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect([there.sent, here.sent]).toEqual([3, 3]);
});

/** What another process does, or passes. */
type Act =
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "consume" | "settle"; readonly plan: number; readonly key: string; readonly cost: number }
  | { readonly do: "reset" | "unblock"; readonly key: string }
  | { readonly do: "block" | "ban"; readonly key: string; readonly ms: number };

it("A request is never rejected later than maxAgeMs after another process has made Redis allow it", async () => {
  const times = { window: "1h" } as const;
  const kinds: ((size: number) => Policy)[] = [
    (limit) => fixedWindow({ limit, ...times }),
    (limit) => slidingWindowCounter({ limit, ...times }),
    (limit) => slidingWindowCounter({ limit, ...times, buckets: 6 }),
    (limit) => slidingWindowLog({ limit, ...times }),
    (limit) => slidingWindowLog({ limit, ...times, countRejected: limit > 1 }),
    (size) => tokenBucket({ capacity: size, refill: size ** 4, every: "1h" }),
    (size) => tokenBucket({ capacity: size, refill: size ** 4, every: "10m", style: "interval" }),
    (size) => leakyBucket({ capacity: size, leak: size ** 4, every: "1h" }),
  ];
  const key = fc.constantFrom("a", "b");
  const ms = fc.integer({ min: 1, max: 5000 });
  const act = fc.oneof<fc.WeightedArbitrary<Act>[]>(
    { weight: 8, arbitrary: fc.record({ do: fc.constant("pass"), ms: fc.oneof(fc.nat(400), fc.nat(2500)) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("consume", "settle"), plan: fc.nat(1), key, cost: fc.nat(3) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("reset", "unblock"), key }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("block", "ban"), key, ms }) },
  );
  let cached = 0;
  const property = fc.asyncProperty(fc.constantFrom(...kinds), fc.array(act, { minLength: 20, maxLength: 60 }), async (kind, acts) => {
    prefix = `changes-${prefixes++}`;
    const [here, there] = [await listening(), new Process()];
    const name = `plans-${prefixes}`;
    const plans = [1, 3].map((size) => createLimit(name, kind(size))) as [Limit, Limit];
    const charges: [Limit, string, Decision][] = [];
    /** Since when Redis has allowed each key. */
    const allowedMs = new Map<string, number>();
    const look = async (): Promise<void> => {
      for (const key of ["a", "b"]) {
        if (!(await there.store.peek(plans[0], key, patienceMs)).allowed) allowedMs.delete(key);
        else if (!allowedMs.has(key)) allowedMs.set(key, nowMs);
      }
    };
    const once = async (act: Act): Promise<void> => {
      const { store } = there;
      if (act.do === "pass") nowMs += act.ms;
      else if (act.do === "consume") {
        const limit = plans[act.plan] as Limit;
        const decision = await store.consume(limit, act.key, Math.max(act.cost, 1), patienceMs);
        if (decision.allowed) charges.push([limit, act.key, decision]);
      } else if (act.do === "settle") {
        const [limit, key, decision] = charges.pop() ?? [];
        if (limit !== undefined) await store.settle(limit, key as string, asCharge(decision as Decision), act.cost, patienceMs);
      } else if (act.do === "reset") await store.reset(plans[act.key === "a" ? 0 : 1], act.key, patienceMs);
      else if (act.do === "unblock") await store.unblock(name, act.key, patienceMs);
      else await store.block(name, act.key, act.ms, act.do, patienceMs);
    };
    for (const act of acts) {
      await once(act);
      await there.answered();
      await look();
      for (const key of ["a", "b"]) {
        const { decision, isCached } = await here.consume(plans[0], key);
        if (isCached) cached++;
        if (decision.allowed) charges.push([plans[0], key, decision]);
        else expect(nowMs - (allowedMs.get(key) ?? nowMs)).toBeLessThanOrEqual(maxAgeMs);
      }
      await look();
    }
    for (const client of open.splice(0)) client.disconnect();
  });
  await fc.assert(property, runs(100));
  expect(cached).toBeGreaterThan(100);
});

describe("by the server's clock", () => {
  let steadyMs: number;
  let replies: (() => void)[];
  let serverMs: number;
  let announcement: string;
  const client = {
    isReady: true,
    send: () => [
      new Promise((resolve) => {
        const reply = [String(serverMs * 1000), announcement, announcement];
        replies.push(() => resolve(reply));
      }),
    ],
  } as unknown as RedisClient;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
    [steadyMs, serverMs, replies, announcement] = [performance.now(), 1_789_948_800_000, [], "1"];
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const pass = (ms: number): void => {
    vi.advanceTimersByTime(ms);
    steadyMs = performance.now();
    serverMs += ms;
  };
  /** A read that takes so long. */
  const read = async (changes: Changes, roundTripMs = 1): Promise<void> => {
    changes.read(steadyMs);
    await new Promise(setImmediate);
    pass(roundTripMs);
    for (const reply of replies.splice(0)) reply();
    await new Promise(setImmediate);
  };
  /** A state that is just asked for, after a read. */
  const startedWith = async (changes: Changes): Promise<number> => {
    await read(changes);
    pass(1200);
    return steadyMs;
  };

  it("a state holds while the reads are equal, and until maxAgeMs after the last of them", async () => {
    const changes = new Changes(client, "key", undefined, maxAgeMs);
    const sentMs = await startedWith(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(false);
    for (let i = 0; i < 20; i++) {
      await read(changes, 30);
      expect(changes.holds(sentMs, steadyMs)).toBe(true);
      pass(800);
    }
    pass(170);
    expect(changes.holds(sentMs, steadyMs)).toBe(true);
    pass(1);
    expect(changes.holds(sentMs, steadyMs)).toBe(false);
    await read(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(true);
    pass(800);
    announcement = "2";
    await read(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(false);
  });

  it.each([-3_600_000, -20, 20, 3_600_000])("a clock that jumps by %i ms counts as a change", async (jumpMs) => {
    const changes = new Changes(client, "key", undefined, maxAgeMs);
    const sentMs = await startedWith(changes);
    await read(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(true);
    pass(800);
    serverMs += jumpMs;
    await read(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(false);
  });
});
