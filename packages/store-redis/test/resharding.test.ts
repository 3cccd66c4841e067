import { concurrency, consumeAll, createLimiter, type FloodgateEvent, fixedWindow, type Policy } from "@floodgate/core";
import { asCharge, type Check, createLimit, type Limit } from "@floodgate/core/store";
import { type RedisCluster, type RedisServer, startCluster } from "@floodgate/test-servers";
import calculateSlot from "cluster-key-slot";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { type RedisStore, redisStore } from "../src/index.js";
import { type Connected, storeLibraries } from "./libraries.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 20_000;

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster({ replicasPerMaster: 0 });
});
afterAll(() => cluster?.stop());

let names = 0;
const nameOf = (): string => `limit-${names++}`;
const ofWindow = (limit: number): Policy => fixedWindow({ limit, window: "365d" });

/** A slot on its way to another node. */
class Move {
  readonly slot: number;
  readonly #from: RedisServer;
  readonly #to: RedisServer;
  readonly #ids: readonly string[];

  private constructor(slot: number, from: RedisServer, to: RedisServer, ids: readonly string[]) {
    this.slot = slot;
    this.#from = from;
    this.#to = to;
    this.#ids = ids;
  }

  /** Begins to move the slot of a request key. No key has moved yet. */
  static async begin(key: string): Promise<Move> {
    const slot = calculateSlot(`{${key}}`);
    const from = await cluster.masterOf(slot);
    const to = cluster.nodes.find((node) => node !== from) as RedisServer;
    const ids = await Promise.all([from, to].map(async (node) => String(await node.command("CLUSTER", "MYID"))));
    await to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0] as string);
    await from.command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1] as string);
    return new Move(slot, from, to, ids);
  }

  /** Moves keys. @throws ReplyError if the other node has one of them already. */
  async keys(which: RegExp): Promise<void> {
    const keys = (await this.#from.command("CLUSTER", "GETKEYSINSLOT", this.slot, 1000)) as string[];
    const some = keys.filter((key) => which.test(key));
    if (some.length > 0) await this.#from.command("MIGRATE", this.#to.host, this.#to.port, "", 0, 5000, "KEYS", ...some);
  }

  /** Moves what is left, and assigns the slot. */
  async end(): Promise<void> {
    await this.keys(/./);
    for (const node of [this.#to, this.#from]) await node.command("CLUSTER", "SETSLOT", this.slot, "NODE", this.#ids[1] as string);
    await cluster.healthy();
  }
}

const clients = (["ioredis 6", "redis 6", "Valkey GLIDE"] as const).slice(0, allRuns ? 3 : 2);

describe.each(clients)("while a slot moves, with %s", (library) => {
  let connected: Connected;
  let store: RedisStore;
  let key: string;
  beforeEach(async () => {
    connected = await storeLibraries[library].connectCluster(cluster.nodes.map(({ port }) => port));
    store = redisStore(connected.client);
    key = `key-${names++}`;
  });
  afterEach(() => connected.close());

  const ask = (limit: Limit) => store.consume(limit, key, 1, timeoutMs);
  const together = (limits: readonly Limit[]) =>
    store.consumeAll(
      limits.map((limit): Check => ({ limit, key, cost: 1 })),
      timeoutMs,
    );

  it("requests with one limit are decided, while those with several wait for their keys", async () => {
    const [stays, moves, fresh] = [5, 5, 5].map((quota) => createLimit(nameOf(), ofWindow(quota))) as [Limit, Limit, Limit];
    await Promise.all([ask(stays), ask(moves)]);
    const move = await Move.begin(key);
    await move.keys(new RegExp(`:${moves.name}:`));
    const waiting = [together([stays, moves]), together([stays, fresh]), together([moves, stays])];
    const alone: number[] = [];
    for (let i = 0; i < 3; i++) {
      const decisions = await Promise.all([stays, moves, fresh, moves, stays].map(ask));
      alone.push(decisions.filter(({ allowed }) => allowed).length);
    }
    // In each turn two requests of the first limit, two of the second and one of the third. The first two have four units left.
    expect(alone).toEqual([5, 5, 1]);
    await move.end();
    for (const decisions of await Promise.all(waiting)) expect(decisions[0]?.allowed && decisions[1]?.allowed).toBe(false);
    for (const limit of [stays, moves]) expect((await store.peek(limit, key, timeoutMs)).remaining).toBe(0);
    expect((await store.peek(fresh, key, timeoutMs)).remaining).toBe(2);
  });

  it("held units count, and the move does not fail", async () => {
    const limiter = createLimiter({ name: nameOf(), policy: ofWindow(2), store, hold: "1h", timeoutMs });
    const held = await Promise.all([limiter.consume(key), limiter.consume(key)]);
    expect(held.map(({ allowed }) => allowed)).toEqual([true, true]);
    const move = await Move.begin(key);
    const third = limiter.consume(key);
    // Another name of the same slot: its answer shows that the third request has been sent.
    await ask(createLimit(nameOf(), ofWindow(1)));
    await move.end();
    expect((await third).allowed).toBe(false);
    await limiter.settle(key, held[0] as (typeof held)[0], 1);
    expect((await limiter.peek(key)).remaining).toBe(0);
    limiter.close();
  });

  it("a slot can be released and taken in one run", async () => {
    const limit = createLimit(nameOf(), concurrency({ limit: 1, hold: "1h" }));
    const taken = asCharge(await ask(limit));
    const move = await Move.begin(key);
    // Half of them are sent in the first run.
    const [, next] = await Promise.all([
      store.settle(limit, key, taken, 0, timeoutMs),
      ask(limit),
      store.peek(limit, key, timeoutMs),
      store.peek(limit, key, timeoutMs),
    ]);
    expect(next.allowed).toBe(true);
    await move.end();
    expect((await ask(limit)).allowed).toBe(false);
  });

  it("a key can be reset", async () => {
    const limit = createLimit(nameOf(), ofWindow(1));
    await ask(limit);
    const move = await Move.begin(key);
    await store.reset(limit, key, timeoutMs);
    expect((await ask(limit)).allowed).toBe(true);
    await move.end();
    expect((await ask(limit)).allowed).toBe(false);
  });

  // GLIDE repeats a run by itself, so the store cannot know why it waits.
  it.runIf(library !== "Valkey GLIDE")("requests that wait too long for it open no breaker", async () => {
    const events: FloodgateEvent[] = [];
    const [one, two] = [5, 5].map((quota) =>
      createLimiter({ name: nameOf(), policy: ofWindow(quota), store, timeoutMs: 500, onEvent: (event) => void events.push(event) }),
    ) as [ReturnType<typeof createLimiter>, ReturnType<typeof createLimiter>];
    await ask(one.limit);
    const move = await Move.begin(key);
    const whole = [one, two].map((limiter) => ({ limiter, key }));
    const decided = await Promise.all(Array.from({ length: 6 }, () => consumeAll(whole)));
    expect(decided.map(({ decision }) => decision.degraded)).toEqual(decided.map(() => true));
    expect(events.filter(({ type }) => type === "breaker")).toEqual([]);
    const [error] = events.flatMap((event) => (event.type === "store-error" ? [event.error] : []));
    expect(error).toMatchObject({
      code: "FLOODGATE_QUEUE_TIMEOUT",
      message: expect.stringContaining("which Redis moves to another server"),
    });
    await move.end();
    expect(await together([one.limit, two.limit])).toMatchObject([{ remaining: 3 }, { remaining: 4 }]);
    for (const limiter of [one, two]) limiter.close();
  });

  it("a process that leases the key makes nothing that the move would meet on the other server", async () => {
    const name = nameOf();
    const policy = ofWindow(1000);
    const other = await storeLibraries[library].connectCluster(cluster.nodes.map(({ port }) => port));
    const limiters = [connected, other].map(({ client }) =>
      createLimiter({ name, policy, store: redisStore(client, { prefix: "leasing", lease: { lifeMs: 10_000 } }), timeoutMs }),
    );
    const consume = async (limiter: (typeof limiters)[0] | undefined): Promise<void> => {
      for (let i = 0; i < 15; i++) expect((await limiter?.consume(key))?.degraded).toBe(false);
    };
    await consume(limiters[0]);
    const move = await Move.begin(key);
    // The state alone.
    await move.keys(new RegExp(`:${name}:[^:]+$`));
    await consume(limiters[1]);
    await move.end();
    for (const limiter of limiters) limiter.close();
    await other.close();
  });
});
