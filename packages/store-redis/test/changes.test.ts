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

describe("a rejection is repeated without Redis until another process's reset", () => {
  const noticed = async (reset: (there: Process, limit: Limit) => Promise<unknown>): Promise<void> => {
    const [here, there] = [await listening(), new Process()];
    const limit = limitOf(yearly(1));
    for (let i = 0; i < 2; i++) await here.consume(limit, "k");
    await expectCached(here, limit, "k", 3000);
    await reset(there, limit);
    const { ms, decision } = await askedAfterMs(here, limit, "k");
    expect(ms).toBeLessThanOrEqual(maxAgeMs + 100);
    expect(decision.allowed).toBe(true);
  };

  it("on a server that is full, and takes no other writes", async () => {
    await noticed(async (there, limit) => {
      await server.command("CONFIG", "SET", "maxmemory", "1");
      try {
        await there.store.reset(limit, "k", patienceMs);
        await there.answered();
      } finally {
        await server.command("CONFIG", "SET", "maxmemory", "0");
      }
    });
  });

  it("whose announcement failed and is repeated, although the process changes nothing else", async () => {
    await noticed(async (there, limit) => {
      const evaluate = there.client.eval;
      there.client.eval = (async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        there.client.eval = evaluate;
        throw new Error("the server of the announcement is down");
      }) as never;
      await there.store.reset(limit, "k", patienceMs);
      await vi.waitFor(() => expect(there.sent).toBe(1), { timeout: 20_000 });
      await there.answered();
    });
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

/** What another process does, and for how many steps it then does nothing. */
interface Act {
  readonly name: "consume" | "settle" | "reset" | "block" | "ban" | "unblock";
  readonly plan: number;
  readonly key: string;
  readonly cost: number;
  readonly ms: number;
  readonly quiet: number;
}

it("A request is never rejected later than maxAgeMs after another process has made Redis allow it", async () => {
  const kinds: ((size: number) => Policy)[] = [
    (limit) => fixedWindow({ limit, window: "1h" }),
    (limit) => slidingWindowCounter({ limit, window: "1h" }),
    (limit) => slidingWindowCounter({ limit, window: "1h", buckets: 6 }),
    (limit) => slidingWindowLog({ limit, window: "1h" }),
    (limit) => slidingWindowLog({ limit, window: "1h", countRejected: limit > 1 }),
    (size) => tokenBucket({ capacity: size, refill: size ** 6, every: "1h" }),
    (size) => leakyBucket({ capacity: size, leak: size ** 6, every: "1h" }),
  ];
  /** Few of them at a time: any announcement would hide that another is missing. */
  const names = fc.constantFrom<Act["name"][]>(
    ["consume"],
    ["consume", "settle"],
    ["reset"],
    ["block"],
    ["ban", "reset"],
    ["block", "ban", "unblock"],
    ["consume", "settle", "reset", "block", "ban", "unblock"],
  );
  const acts = names.chain((some) => {
    const act = fc.record({
      name: fc.constantFrom(...some),
      plan: fc.nat(1),
      key: fc.constantFrom("a", "b"),
      cost: fc.nat(3),
      ms: fc.constantFrom(1, 3000, 30_000),
      quiet: fc.constantFrom(0, 0, 1, 5, 10),
    });
    return fc.array(act, { minLength: 5, maxLength: 12 });
  });
  let cached = 0;
  const property = fc.asyncProperty(fc.constantFrom(...kinds), acts, fc.integer({ min: 200, max: 600 }), async (kind, acts, stepMs) => {
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
    const once = async ({ name: act, plan, key, cost, ms }: Act): Promise<void> => {
      const { store } = there;
      const limit = plans[plan] as Limit;
      if (act === "consume") {
        const decision = await store.consume(limit, key, Math.max(cost, 1), patienceMs);
        if (decision.allowed) charges.push([limit, key, decision]);
      } else if (act === "settle") {
        const [limit, key, decision] = charges.pop() ?? [];
        if (limit !== undefined) await store.settle(limit, key as string, asCharge(decision as Decision), cost, patienceMs);
      } else if (act === "reset") await store.reset(limit, key, patienceMs);
      else if (act === "unblock") await store.unblock(name, key, patienceMs);
      else await store.block(name, key, ms, act, patienceMs);
    };
    const ask = async (): Promise<void> => {
      await there.answered();
      await look();
      for (const key of ["a", "b"]) {
        const { decision, isCached } = await here.consume(plans[0], key);
        if (isCached) cached++;
        if (decision.allowed) charges.push([plans[0], key, decision]);
        else expect(nowMs - (allowedMs.get(key) ?? nowMs)).toBeLessThanOrEqual(maxAgeMs);
      }
      await look();
    };
    for (let i = 0; i < 3; i++) await ask();
    for (const act of acts) {
      await once(act);
      await ask();
      for (let i = 0; i < act.quiet; i++) {
        nowMs += stepMs;
        await ask();
      }
    }
    for (const client of open.splice(0)) client.disconnect();
  });
  await fc.assert(property, runs(100));
  expect(cached).toBeGreaterThan(500);
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
