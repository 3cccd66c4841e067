import { createLimit, type Limit, type Store } from "@floodgate/core/store";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { allRuns, runs } from "../../../test/runs.js";
import { type AnyRedis, redisStore } from "../src/index.js";
import { isSound, mutated, mutation, spliced } from "./hostile-replies.js";
import { everyState } from "./policies.js";
import { useRedis } from "./use-redis.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 20_000;

let redis: Redis;
useRedis((_server, client) => {
  redis = client;
});

type Answers = readonly PromiseSettledResult<unknown>[];
type Send = (args: readonly string[], nth: number) => unknown;

const clock = (): number => 1_789_948_800_000;

/** A store whose client replies with the result of `send`. */
function storeOver(send: Send, denyCache: boolean): Store<"async"> {
  let sent = 0;
  const evalsha = async (...args: string[]): Promise<unknown> => send(args, sent++);
  const client = { status: "ready", connect: async () => undefined, evalsha, eval: evalsha };
  return redisStore(client as unknown as AnyRedis, { clock, denyCache, prefix: "malformed" });
}

interface Ask {
  readonly what: "consume" | "all" | "peek" | "settle" | "reset" | "keyState";
  readonly key: string;
  readonly limits: readonly Limit[];
  readonly cost: number;
}

async function ask(store: Store<"async">, { what, key, limits, cost }: Ask): Promise<unknown> {
  const limit = limits[0] as Limit;
  switch (what) {
    case "consume":
      return store.consume(limit, key, cost, timeoutMs);
    case "peek":
      return store.peek(limit, key, timeoutMs);
    case "reset":
      return store.reset(limit, key, timeoutMs);
    case "keyState":
      return store.keyState(limit, key, timeoutMs);
    case "settle":
      return store.settle(limit, key, { cost: 4, atMs: clock(), state: undefined }, cost, timeoutMs);
    default:
      return store.consumeAll(
        limits.map((limit, i) => ({ limit, key, cost, shadow: i % 3 === 1, dryRun: i % 3 === 2 })),
        timeoutMs,
      );
  }
}

/** Sends everything at once, so that it fits into one or two rounds. */
const askAll = (store: Store<"async">, asks: readonly Ask[]): Promise<Answers> => Promise.allSettled(asks.map((one) => ask(store, one)));

/** Identifies a run when it is repeated: all its arguments except its deadline. */
const idOf = (args: readonly string[]): string =>
  spliced(args, Number(args[1]) + 2, 1)
    .slice(1)
    .join("\n");

/** The server's answers, and the raw replies that contained them. */
async function decided(
  asks: readonly Ask[],
  denyCache: boolean,
): Promise<{ answers: Answers; replies: Map<string, readonly unknown[]>; lateReply: unknown }> {
  const replies = new Map<string, readonly unknown[]>();
  let lateReply: unknown;
  let isAmbiguous = false;
  const send: Send = async (args) => {
    const reply = (await redis.eval(...(args as [string, number]))) as unknown[];
    if (reply.length === 1) lateReply = reply;
    // Two equal runs in a row have other replies, which a repetition could not tell apart.
    else if (replies.has(idOf(args))) isAmbiguous = true;
    else replies.set(idOf(args), reply);
    return reply;
  };
  const withSource: Send = (args, nth) => {
    if (args[0]?.length === 40) throw new Error("NOSCRIPT");
    return send(args, nth);
  };
  const answers = await askAll(storeOver(withSource, denyCache), asks);
  fc.pre(!isAmbiguous);
  return { answers, replies, lateReply };
}

const limits = everyState.map((policy, i) => createLimit(`limit-${i}`, policy));
const asked: fc.Arbitrary<Ask> = fc.record({
  what: fc.constantFrom("consume", "consume", "all", "peek", "settle", "reset", "keyState"),
  key: fc.constantFrom("a", "b"),
  limits: fc.shuffledSubarray(limits, { minLength: 1, maxLength: 4 }),
  cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 12 })),
});
const asks = fc
  .array(fc.tuple(asked, fc.constantFrom(1, 1, 1, 3)), { minLength: 1, maxLength: 10 })
  // Equal requests are decided in one go.
  .map((list) => list.flatMap(([one, times]) => new Array<Ask>(times).fill(one)));

const fault = { status: "rejected", reason: { code: "FLOODGATE_STORE_FAULT", name: "FloodgateError" } };

describe("a modified reply", () => {
  it("fails unreadable steps with a coded error; readable steps are correct or within bounds", async () => {
    await fc.assert(
      fc.asyncProperty(asks, fc.boolean(), fc.array(mutation, { minLength: 15, maxLength: 30 }), async (asks, denyCache, mutations) => {
        await redis.flushall();
        const { answers, replies, lateReply } = await decided(asks, denyCache);
        for (const mutation of mutations) {
          let isMutated = false;
          // Each is given once, because steps that are sent again may form other runs.
          const left = new Map(replies);
          const read = await askAll(
            storeOver((args) => {
              if (args.at(Number(args[1]) + 2) === "0") return lateReply;
              const reply = left.get(idOf(args));
              if (reply === undefined) throw new Error("This was not asked before.");
              const given = isMutated ? reply : mutated(reply, mutation);
              isMutated = true;
              const isLate = Array.isArray(given) && given.length === 1;
              if (!isLate) left.delete(idOf(args));
              return given;
            }, denyCache),
            asks,
          );
          read.forEach((answer, i) => {
            if (answer.status === "rejected") {
              if (answers[i]?.status === "fulfilled") expect(answer).toMatchObject(fault);
              return;
            }
            if (mutation.kind !== "replace" && mutation.kind !== "insert") expect(answer).toEqual(answers[i]);
            const values = Array.isArray(answer.value) ? answer.value : [answer.value];
            values.forEach((value, j) => {
              expect([value, isSound(value, asks[i]?.limits[j] as Limit)]).toEqual([value, true]);
            });
          });
        }
      }),
      runs(60),
    );
  });

  it.each([2 ** 40, 2 ** 70, -(2 ** 40)])("with %d in one or two places is read to its end", async (huge) => {
    for (const limit of limits) {
      await redis.flushall();
      const one = { key: "a", limits: [limit], cost: 1 } as const;
      const asks = (["consume", "all", "peek", "settle", "keyState"] as const).map((what): Ask => ({ ...one, what }));
      const { replies, lateReply } = await decided(asks, true);
      for (const [id, reply] of replies) {
        // Pairs take a minute.
        const pairs = [...reply.keys()].flatMap((first) => (allRuns ? [...reply.keys()] : [first]).map((second) => [first, second]));
        for (const places of pairs) {
          const given = (args: readonly string[]) =>
            idOf(args) === id ? reply.map((value, i) => (places.includes(i) ? huge : value)) : (replies.get(idOf(args)) ?? lateReply);
          for (const { status, ...answer } of await askAll(storeOver(given, true), asks))
            if (status === "rejected") expect({ status, ...answer }).toMatchObject(fault);
        }
      }
    }
  });

  it("with numbers as strings, bytes or bigints is read correctly", async () => {
    await fc.assert(
      fc.asyncProperty(
        asks,
        fc.constantFrom<(value: number) => unknown>(String, BigInt, (value) => Buffer.from(String(value))),
        async (asks, as) => {
          await redis.flushall();
          const { answers, replies, lateReply } = await decided(asks, true);
          const handOver = (reply: readonly unknown[]): unknown[] => reply.map((value) => (typeof value === "number" ? as(value) : value));
          const send: Send = (args) => handOver((replies.get(idOf(args)) ?? lateReply) as unknown[]);
          expect(await askAll(storeOver(send, true), asks)).toEqual(answers);
        },
      ),
      runs(40),
    );
  });
});
