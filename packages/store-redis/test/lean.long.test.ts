import { fixedWindow, type Policy, slidingWindowCounter } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
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

/** A consume, a settlement, or a block of a key. */
type Act = { readonly plan: number; readonly cost: number; readonly byMs: number } & (
  | { readonly consume: true }
  | { readonly settleTo: number }
  | { readonly blockMs: number }
);

function actsFor(plans: Plans): fc.Arbitrary<Act[]> {
  const { spanMs, quota } = plans[0] as Policy;
  const shared = {
    plan: fc.nat(plans.length - 1),
    cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.integer({ min: 1, max: quota + 1 }) }),
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

const lives = (plans: fc.Arbitrary<Plans>): fc.Arbitrary<[Plans, Act[]]> =>
  plans.chain((made) => fc.tuple(fc.constant(made), actsFor(made)));

/** A reply without the server's time, and the instant of the state that begins at it. */
const answerOf = (reply: Reply): Reply[] => (reply as Reply[]).slice(1);

/** Plays the same acts on two keys: consumes by the lean scripts on one and by the general one on the other. */
class Pair {
  readonly #plans: Plans;
  readonly #tag = freshKey();
  readonly #wantsState: boolean;

  constructor(plans: Plans, wantsState: boolean) {
    this.#plans = plans;
    this.#wantsState = wantsState;
  }

  async play(nowMs: number, act: Act): Promise<void> {
    const policy = this.#plans[act.plan] as Policy;
    const { number, parameters, edgesAt } = argumentsOf(policy);
    const edges = edgesAt?.(nowMs) ?? [];
    const batch = (tag: string, ...step: (string | number)[]) =>
      this.#run(tag, "EVALSHA", general.sha, nowMs, this.#wantsState ? 1 : 0, 1, number, ...parameters, ...edges, ...step);
    const { source } = leanScript({ number, parameters }, "state".length, this.#wantsState);
    const [one, other] = await Promise.all(
      ["lean", "general"].map(async (side) => {
        const tag = `${this.#tag}-${side}`;
        if ("settleTo" in act) return batch(tag, "s", 1, act.cost, nowMs, Number.MAX_SAFE_INTEGER, act.settleTo);
        if ("blockMs" in act) {
          const value = [nowMs, nowMs + act.blockMs, 0, 0].join(" ");
          return [0, await server.command("SET", `{${tag}}:blocks`, value, "PX", 3_600_000)];
        }
        if (side === "lean") return this.#run(tag, "EVAL", source, nowMs, act.cost, ...edges);
        return batch(tag, "c", 1, act.cost);
      }),
    );
    expect(answerOf(one as Reply)).toEqual(answerOf(other as Reply));
    const [left, right] = await Promise.all(["lean", "general"].map((side) => this.#state(`${this.#tag}-${side}`)));
    expect(left).toEqual(right);
  }

  #run(tag: string, command: string, script: string, ...args: (string | number)[]): Promise<Reply> {
    return server.command(command, script, 1, `{${tag}}:state`, Number.MAX_SAFE_INTEGER, ...args);
  }

  /** The stored bytes without the birth, and whether the key expires. */
  async #state(tag: string): Promise<unknown> {
    const bytes = await redis.getBuffer(`{${tag}}:state`);
    return [bytes?.subarray(7).toString("hex"), (await redis.pttl(`{${tag}}:state`)) > 0];
  }
}

const tenAMinute = () => leanScript(argumentsOf(fixedWindow({ limit: 10, window: "1m" })), "state".length, false);

describe("a lean script", () => {
  for (const [name, plans] of [
    ["small", smallPlans],
    ["large", largePlans],
  ] as const) {
    it(`replies with the same bytes as the general one and leaves the same state, with ${name} numbers`, async () => {
      await fc.assert(
        fc.asyncProperty(lives(plans), fc.boolean(), async ([made, acts], wantsState) => {
          const pair = new Pair(made, wantsState);
          let nowMs = startMs;
          for (const act of acts) {
            nowMs += act.byMs;
            await pair.play(nowMs, act);
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
  it.each(everyState)(
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
        const { sha } = leanScript(argumentsOf(policy), kindOf(policy).length, true);
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

it("decisions that share a run use the general script", async () => {
  const [limit, store] = [createLimit("shared", slidingWindowCounter({ limit: 10, window: "1m" })), redisStore(redis)];
  await store.consume(limit, "one", 1, timeoutMs);
  const { commands } = await watched(server, () =>
    Promise.all(["two", "three", "four"].map((key) => store.consume(limit, key, 1, timeoutMs))),
  );
  expect(commands.filter(({ name }) => name === "EVALSHA").map(({ keys, isLean }) => [keys.length, isLean])).toEqual([
    [2, false],
    [1, true],
  ]);
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
