import { consumeAll, createLimiter, fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { type RedisCluster, startCluster } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { anyCharacter } from "../../conformance/test/characters.js";
import { redisStore } from "../src/index.js";
import { type Connected, libraries } from "./libraries.js";
import { tenAnHour } from "./policies.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 20_000;

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster({ replicasPerMaster: 0 });
});
afterAll(() => cluster?.stop());

/** Characters with a meaning in slots, scripts or patterns, and some that UTF-8 cannot encode. */
const special = "{ } {} %7D %00 %D800 : , ( ) \\ * ? [a] a b 0 \0 \n \r\n \ud800 \udc00 \ufffd \u{1f600} \u00e9 e\u0301 __proto__".split(
  " ",
);
const key = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: fc.constantFrom(...special, " "), maxLength: 5 }) },
  { weight: 2, arbitrary: fc.string({ unit: anyCharacter, maxLength: 300 }) },
);
const prefix = fc.constantFrom("floodgate", ":", "*", "%7D", " ", "\u{1f600}", "a:b\n");
const name = fc.string({ unit: fc.constantFrom(..."{}%:*\\ ab,()[]?\"'~"), minLength: 1, maxLength: 6 });

/** A limit of 1 under an unused name. */
let limits = 0;
const one = (word = "") => createLimit(`${word}${limits++}`, fixedWindow({ limit: 1, window: "365d" }));

/** The number of CROSSSLOT, MOVED and ASK errors on all nodes. */
async function misdirected(): Promise<number> {
  const stats = await Promise.all(cluster.nodes.map((node) => node.info("errorstats")));
  return stats.flatMap(Object.keys).filter((stat) => /CROSSSLOT|MOVED|ASK/.test(stat)).length;
}

describe.each([libraries["ioredis 6"], libraries["redis 6"]])("on a Cluster with library %#", (library) => {
  let connected: Connected;
  beforeAll(async () => {
    connected = await library.connectCluster(cluster.nodes.map(({ port }) => port));
  });
  afterAll(() => connected?.close());

  it("different keys never share a count, and each is sent to its slot", async () => {
    await fc.assert(
      fc.asyncProperty(prefix, fc.uniqueArray(key, { minLength: 2, maxLength: 40 }), async (prefix, keys) => {
        const store = redisStore(connected.client, { prefix, denyCache: false });
        const limit = one();
        const ask = async () =>
          (await Promise.all(keys.map((text) => store.consume(limit, text, 1, timeoutMs)))).map(({ allowed }) => allowed);
        expect(await ask()).toEqual(keys.map(() => true));
        expect(await ask()).toEqual(keys.map(() => false));
      }),
      runs(60),
    );
    expect(await misdirected()).toBe(0);
  });

  it("limits of different names never share a count, and all limits of a key share its slot", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(name, { minLength: 1, maxLength: 6 }),
        fc.uniqueArray(key, { minLength: 1, maxLength: 4 }),
        async (names, keys) => {
          const store = redisStore(connected.client, { denyCache: false, prefix: `run-${limits}` });
          const named = names.map((text) => createLimit(text, one().policy));
          for (const expected of [true, false]) {
            for (const text of keys) {
              const decisions = await store.consumeAll(
                named.map((limit) => ({ limit, key: text, cost: 1 })),
                timeoutMs,
              );
              expect(decisions.map(({ allowed }) => allowed)).toEqual(named.map(() => expected));
            }
          }
        },
      ),
      runs(40),
    );
    expect(await misdirected()).toBe(0);
  });

  it("a key of a megabyte works in the store, and limiters hash it to a short one", async () => {
    const megabyte = "k".repeat(1_000_000);
    const keys = [megabyte, `${megabyte}}`, megabyte.slice(1)];
    const prefix = `megabyte-${limits}`;
    const store = redisStore(connected.client, { denyCache: false, prefix });
    const limit = one();
    const limiter = createLimiter({ name: limit.name, policy: limit.policy, store, timeoutMs });
    for (const expected of [true, false]) {
      for (const text of keys) {
        expect((await store.consume(limit, text, 1, timeoutMs)).allowed).toBe(expected);
        expect((await limiter.consume(text)).allowed).toBe(expected);
      }
    }
    const hashed = await Promise.all(cluster.nodes.map((node) => node.command("KEYS", `${prefix}:{?#*`)));
    expect((hashed as string[][]).flat().map(({ length }) => length < 200)).toEqual(keys.map(() => true));
  });
});

it.each(tenAnHour)("a cost of 2^53 - 1 is rejected, charges nothing and affects no other request: $stateKind", async (policy) => {
  const connected = await libraries["ioredis 6"].connectCluster(cluster.nodes.map(({ port }) => port));
  const store = redisStore(connected.client);
  const [limiter, other] = ["huge", "other"].map((name) =>
    createLimiter({ name: `${name} ${policy.stateKind}`, policy, store, timeoutMs }),
  );
  if (limiter === undefined || other === undefined) throw new Error();
  const cost = Number.MAX_SAFE_INTEGER;
  const [alone, beside, whole] = await Promise.all([
    limiter.consume("k", { cost }),
    limiter.consume("k"),
    consumeAll([
      { limiter, key: "k", cost },
      { limiter: other, key: "k" },
    ]),
  ]);
  expect(alone).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, cost });
  expect(beside).toMatchObject({ allowed: true, remaining: 9 });
  expect(whole).toMatchObject({ allowed: false, decision: { retryAfterMs: Number.POSITIVE_INFINITY } });
  expect([(await limiter.peek("k")).remaining, (await other.peek("k")).remaining]).toEqual([9, 10]);
  await connected.close();
});
