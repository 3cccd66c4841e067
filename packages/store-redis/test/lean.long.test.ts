import { fixedWindow, type Policy, slidingWindowCounter } from "@floodgate/core";
import { createLimit, type Limit } from "@floodgate/core/store";
import { type RedisServer, type Reply, startRedis } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { argumentsOf, kindOf } from "../src/algorithms.js";
import { redisStore } from "../src/index.js";
import { general, leanScript } from "../src/script.js";
import { watched } from "./commands.js";
import { libraries } from "./libraries.js";
import { largePlans, type Plans, smallPlans } from "./plans.js";
import { everyState } from "./policies.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 20_000;
const startMs = 1_789_948_800_000;

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
  await server.command("SCRIPT", "LOAD", general.source);
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

let keys = 0;
const freshKey = (): string => `key-${keys++}`;

/** One limit of a request: a key's plans, the one at hand, and the cost. */
interface Part {
  readonly plans: Plans;
  readonly plan: number;
  readonly cost: number;
}

/** A request under all limits, or a settlement or a block under one of them. */
type Act = { readonly parts: readonly Part[]; readonly byMs: number; readonly at: number } & (
  | { readonly consume: true }
  | { readonly settleTo: number }
  | { readonly blockMs: number }
);

function actsFor(limits: readonly Plans[]): fc.Arbitrary<Act[]> {
  const quotas = limits.map(([policy]) => (policy as Policy).quota);
  const spans = limits.map(([policy]) => (policy as Policy).spanMs);
  const [quota, spanMs] = [Math.min(...quotas), Math.max(...spans)];
  const shared = {
    parts: fc.tuple(
      ...limits.map((plans, i) =>
        fc.record({
          plans: fc.constant(plans),
          plan: fc.nat(plans.length - 1),
          cost: fc.oneof(
            { weight: 3, arbitrary: fc.constant(1) },
            { weight: 2, arbitrary: fc.integer({ min: 1, max: (quotas[i] as number) + 1 }) },
          ),
        }),
      ),
    ),
    at: fc.nat(limits.length - 1),
    byMs: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(0, 0, 1) },
      { weight: 2, arbitrary: fc.nat(Math.ceil((2 * spanMs) / quota)) },
      { weight: 1, arbitrary: fc.integer({ min: -2 * spanMs, max: 2 * spanMs }) },
    ),
  };
  const act = fc.oneof(
    { weight: 10, arbitrary: fc.record({ ...shared, consume: fc.constant(true as const) }) },
    { weight: 2, arbitrary: fc.record({ ...shared, settleTo: fc.oneof(fc.nat(3 * quota), fc.constant(2 ** 52)) }) },
    { weight: 1, arbitrary: fc.record({ ...shared, blockMs: fc.integer({ min: 1, max: spanMs }) }) },
  );
  return fc.array(act, { minLength: 1, maxLength: 30, size: "max" });
}

const lives = (plans: fc.Arbitrary<Plans>, most: number): fc.Arbitrary<Act[]> =>
  fc.array(plans, { minLength: 1, maxLength: most }).chain(actsFor);

/** A reply without the server's time, and the instant of the state that begins at it. */
const answerOf = (reply: Reply): Reply[] => (reply as Reply[]).slice(1);

/** The same request by its lean script, and by the general one. */
const sides = ["lean", "general"] as const;

/** Plays the same acts on keys of their own for each side. */
class Sides {
  readonly #tag = freshKey();
  readonly #isWhole: boolean;
  readonly #wantsState: boolean;

  constructor(isWhole: boolean, wantsState: boolean) {
    this.#isWhole = isWhole;
    this.#wantsState = wantsState;
  }

  async play(nowMs: number, act: Act): Promise<void> {
    const played = await Promise.all(sides.map((side) => this.#act(side, nowMs, act)));
    const states = await Promise.all(
      sides.map((side) => Promise.all(act.parts.map((_, i) => this.#state(keyOf(`${this.#tag}-${side}`, i))))),
    );
    expect(played[0]).toEqual(played[1]);
    expect(states[0]).toEqual(states[1]);
  }

  async #act(side: (typeof sides)[number], nowMs: number, act: Act): Promise<Reply[]> {
    const { parts, at } = act;
    const tag = `${this.#tag}-${side}`;
    const policies = parts.map(({ plans, plan }) => argumentsOf(plans[plan] as Policy));
    const edges = policies.map(({ edgesAt }) => edgesAt?.(nowMs) ?? []);
    const head = [nowMs, this.#wantsState ? 1 : 0, "", policies.length];
    policies.forEach(({ number, parameters }, i) => {
      head.push(number, ...parameters.map(Number), ...(edges[i] as string[]).map(Number));
    });
    const { cost } = parts[at] as Part;
    if ("settleTo" in act)
      return this.#run(general.source, [keyOf(tag, at)], ...head, "s", at + 1, cost, nowMs, Number.MAX_SAFE_INTEGER, act.settleTo, "");
    if ("blockMs" in act) {
      const value = [nowMs, nowMs + act.blockMs, 0, 0].join(" ");
      return [await server.command("SET", blockOf(tag, at), value, "PX", 3_600_000)];
    }
    const keys = parts.map((_, i) => keyOf(tag, i));
    if (side === "general") {
      if (!this.#isWhole) return this.#run(general.source, keys, ...head, "c", 1, cost);
      return this.#run(general.source, keys, ...head, "a", parts.length, ...parts.flatMap(({ cost }, i) => [i + 1, cost, 0]), 1);
    }
    const limits = policies.map((policy) => ({ ...policy, kindSize: "state".length }));
    const { source } = leanScript(limits, this.#isWhole, this.#wantsState);
    return this.#run(source, keys, nowMs, ...parts.map((part) => part.cost), ...edges.flat());
  }

  async #run(source: string, keys: readonly string[], ...args: (string | number)[]): Promise<Reply[]> {
    return answerOf(await server.command("EVAL", source, keys.length, ...keys, Number.MAX_SAFE_INTEGER, ...args));
  }

  /** The stored bytes without the birth, and whether the key expires. */
  async #state(key: string): Promise<unknown> {
    const bytes = await redis.getBuffer(key);
    return [bytes?.subarray(7).toString("hex"), (await redis.pttl(key)) > 0];
  }
}

const keyOf = (tag: string, i: number): string => `{${tag}}:limit-${i}:state`;
const blockOf = (tag: string, i: number): string => `{${tag}}:limit-${i}:blocks`;

const tenAMinute = () => leanScript([{ ...argumentsOf(fixedWindow({ limit: 10, window: "1m" })), kindSize: "state".length }], false, false);

describe("a lean script", () => {
  for (const [name, plans] of [
    ["small", smallPlans],
    ["large", largePlans],
  ] as const) {
    it.each([
      ["one limit", false, 1],
      ["several limits", true, 6],
    ])(`replies with the same bytes as the general one and leaves the same state: %s, with ${name} numbers`, async (_, isWhole, most) => {
      await fc.assert(
        fc.asyncProperty(lives(plans, most), fc.boolean(), async (acts, wantsState) => {
          const played = new Sides(isWhole, wantsState);
          let nowMs = startMs;
          for (const act of acts) {
            nowMs += act.byMs;
            await played.play(nowMs, act);
          }
        }),
        runs(60),
      );
    });
  }

  it("does nothing past its deadline", async () => {
    const key = `${freshKey()}:state`;
    const reply = await server.command("EVAL", tenAMinute().source, 1, key, 1);
    expect(reply).toHaveLength(1);
    expect(await server.command("EXISTS", key)).toBe(0);
  });

  it("ignores a block of another type, as the general one does", async () => {
    const key = freshKey();
    await redis.rpush(`${key}:blocks`, "one");
    const reply = await server.command("EVAL", tenAMinute().source, 1, `${key}:state`, 2 ** 52);
    expect(answerOf(reply)[0]).toBe(9);
  });
});

describe.each(Object.entries(libraries))("a store with %s", (_, library) => {
  // Held units have none.
  it.each(everyState.filter(({ algorithm, holdMs }) => holdMs === undefined || algorithm === "concurrency"))(
    "uses the lean script of $stateKind for a decision alone, and sends its source to a server without it",
    async (policy) => {
      const { client, close } = await library.connect(server.port);
      try {
        const [limit, key, store] = [createLimit(freshKey(), policy), freshKey(), redisStore(client)];
        // The first answer tells the server's time.
        await store.consume(limit, key, 1, timeoutMs);
        const { commands } = await watched(server, () => store.consume(limit, key, 2, timeoutMs));
        expect(commands).toMatchObject([{ name: "EVALSHA", isLean: true }]);
        await redis.script("FLUSH");
        const { answer, commands: resent } = await watched(server, () => store.consume(limit, key, 3, timeoutMs));
        expect(resent.map(({ name }) => name)).toEqual(["EVALSHA", "EVAL"]);
        expect(answer).toMatchObject({ allowed: true, remaining: 4 });
        const { sha } = leanScript([{ ...argumentsOf(policy), kindSize: kindOf(policy).length }], false, true);
        expect(await redis.script("EXISTS", sha, general.sha)).toEqual([1, 0]);
      } finally {
        await close();
      }
    },
  );
});

it("policies beyond two hundred have no script of their own, and are decided all the same", async () => {
  const server = await startRedis();
  const client = new Redis(server.port);
  try {
    for (let limit = 1; limit <= 250; limit++) {
      const decision = await redisStore(client).consume(
        createLimit("many", fixedWindow({ limit, window: "365d" })),
        `key-${limit}`,
        1,
        timeoutMs,
      );
      expect(decision).toMatchObject({ allowed: true, limit, remaining: limit - 1 });
    }
    const { number_of_cached_scripts: scripts } = await server.info("memory");
    expect(Number(scripts)).toBeLessThan(210);
  } finally {
    client.disconnect();
    await server.stop();
  }
});

it("requests that share a run use the general script", async () => {
  const store = redisStore(redis);
  const [second, hour] = (["1s", "1h"] as const).map((window) => createLimit(window, slidingWindowCounter({ limit: 10, window }))) as [
    Limit,
    Limit,
  ];
  const asks: ((key: string) => unknown)[] = [
    (key) => store.consume(hour, key, 1, timeoutMs),
    (key) =>
      store.consumeAll(
        [second, hour].map((limit) => ({ limit, key, cost: 1 })),
        timeoutMs,
      ),
  ];
  for (const [i, ask] of asks.entries()) {
    await ask(freshKey());
    const { commands } = await watched(server, () => Promise.all(["two", "three", "four"].map(ask)));
    const sent = commands.filter(({ name }) => name === "EVALSHA").map(({ keys, isLean }) => [keys.length / (i + 1), isLean]);
    expect(sent).toEqual([[3, false]]);
  }
});

it("a key of another type fails its own decision alone, also when the server gets the source", async () => {
  const [limit, store] = [createLimit("foreign", fixedWindow({ limit: 10, window: "365d" })), redisStore(redis)];
  await store.consume(limit, "key", 1, timeoutMs);
  const [name] = (await redis.keys("*foreign*")) as [string];
  await redis.del(name);
  await redis.rpush(name, "one");
  for (const prepare of [() => redis.ping(), () => redis.script("FLUSH")]) {
    await prepare();
    await expect(store.consume(limit, "key", 1, timeoutMs)).rejects.toMatchObject({ code: "FLOODGATE_FOREIGN_VALUE" });
  }
  expect(await redis.lrange(name, 0, -1)).toEqual(["one"]);
});
