import { type Policy, slidingWindowCounter } from "@floodgate/core";
import { algorithmOf, createLimit, type Limit } from "@floodgate/core/store";
import { type RedisServer, type Reply, startRedis } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { argumentsOf } from "../src/algorithms.js";
import { redisStore } from "../src/index.js";
import { general } from "../src/script.js";
import { policies } from "./policies.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

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

const kind = "state";
const startMs = 1_789_948_800_000;
const maxKeys = 6;

/** What a round does with a key: consumes units once or several times in a row, or finds that another value was written meanwhile. */
interface Act {
  readonly at: number;
  readonly cost: number;
  readonly times: number;
  readonly meanwhile: "nothing" | "deleted" | "blocked" | "another type" | "another text";
}

const act: fc.Arbitrary<Act> = fc.record({
  at: fc.nat(maxKeys - 1),
  cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 13 }) }),
  times: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.integer({ min: 2, max: 5 }) }),
  meanwhile: fc.oneof(
    { weight: 12, arbitrary: fc.constant("nothing" as const) },
    { weight: 1, arbitrary: fc.constantFrom("deleted" as const, "blocked" as const, "another type" as const, "another text" as const) },
  ),
});
const round = fc.record({
  acts: fc.uniqueArray(act, { selector: ({ at }) => at, minLength: 1, maxLength: maxKeys }),
  byMs: fc.oneof(fc.constantFrom(0, 1, 7), fc.nat(100), fc.integer({ min: -2000, max: 5000 })),
});
const readsAhead = policies.filter((policy) => algorithmOf(policy).grows === undefined);

let tags = 0;

/** The same rounds on keys of their own. */
class Side {
  readonly #tag: string;
  readonly #kindSize: string;

  constructor(tag: string, kindSize: string) {
    this.#tag = tag;
    this.#kindSize = kindSize;
  }

  #key(at: number, last = kind): string {
    return `{${this.#tag}-${at}}:limit:${last}`;
  }

  async play(nowMs: number, { number, parameters, edgesAt }: ReturnType<typeof argumentsOf>, acts: readonly Act[]): Promise<Reply[]> {
    for (const { at, meanwhile } of acts) {
      if (meanwhile === "nothing") continue;
      if (meanwhile === "blocked") await redis.set(this.#key(at, "blocks"), `${nowMs} ${nowMs + 500} 0 0`);
      else await redis.del(this.#key(at));
      if (meanwhile === "another type") await redis.rpush(this.#key(at), "one");
      if (meanwhile === "another text") await redis.set(this.#key(at), "text");
    }
    const head = [Number.MAX_SAFE_INTEGER, nowMs, 1, this.#kindSize, 1, number, ...parameters, ...(edgesAt?.(nowMs) ?? [])];
    const steps = acts.flatMap(({ cost, times }) => (times > 1 ? ["j", 1, cost, times] : cost > 1 ? ["c", 1, cost] : [1, 1]));
    const keys = acts.map(({ at }) => this.#key(at));
    return (await server.command("EVALSHA", general.sha, keys.length, ...keys, ...head, ...steps)) as Reply[];
  }

  /** The stored bytes without the birth of the state, and whether the key expires. */
  contents(): Promise<unknown[]> {
    return Promise.all(
      Array.from({ length: maxKeys }, async (_, at) => {
        const key = this.#key(at);
        const type = await redis.type(key);
        return [type, type === "string" && (await redis.getBuffer(key))?.subarray(7).toString("hex"), (await redis.pttl(key)) > 0];
      }),
    );
  }
}

it("a round whose states are read ahead has the replies of any other round, and leaves the same states", async () => {
  await fc.assert(
    fc.asyncProperty(readsAhead, fc.array(round, { minLength: 1, maxLength: 12, size: "max" }), async (policy: Policy, rounds) => {
      const tag = tags++;
      const [ahead, other] = [new Side(`ahead-${tag}`, String(kind.length)), new Side(`other-${tag}`, "")];
      let nowMs = startMs;
      for (const { acts, byMs } of rounds) {
        nowMs += byMs;
        const [one, two] = [await ahead.play(nowMs, argumentsOf(policy), acts), await other.play(nowMs, argumentsOf(policy), acts)];
        // The first is the server's time.
        expect(one.slice(1)).toEqual(two.slice(1));
        expect(await ahead.contents()).toEqual(await other.contents());
      }
    }),
    runs(200),
  );
});

it("requests of one moment with different costs of a key, or of several limits, all count", async () => {
  const store = redisStore(redis);
  const [limit, other] = ["api", "other"].map((name) => createLimit(name, slidingWindowCounter({ limit: 100, window: "365d" }))) as [
    Limit,
    Limit,
  ];
  // The first answer tells the server's time.
  await store.consume(limit, "first", 1, 20_000);
  const ask = async (): Promise<number[]> => {
    const asked = [store.consume(limit, "key", 1, 20_000), store.consume(limit, "key", 2, 20_000), store.consume(other, "key", 4, 20_000)];
    const decided = await Promise.all([...asked, store.consume(limit, "key", 1, 20_000)]);
    return decided.map(({ remaining }) => remaining);
  };
  expect(await ask()).toEqual([99, 97, 96, 96]);
  expect(await ask()).toEqual([95, 93, 92, 92]);
});
