import { createLimiter, type Decision, type Policy } from "@floodgate/core";
import { asCharge, createLimit, type Limit } from "@floodgate/core/store";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { checkNumbers, largePolicies } from "../../conformance/src/store/large.js";
import { redisStore } from "../src/index.js";
import { everyState } from "./policies.js";
import { useRedis } from "./use-redis.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 20_000;

let redis: Redis;
useRedis((_server, client) => {
  redis = client;
});

const nowMs = 1_789_948_800_000;
const clock = (): number => nowMs;
const tenYearsMs = 3650 * 86_400_000;
const longestBlockMs = 2 ** 50;

let keys = 0;

/** Numbers of all sizes, as a stored value may hold them. */
const number = fc.oneof(
  fc.constantFrom(0n, 1n, -1n, 2n ** 46n, 2n ** 50n, 2n ** 51n, 2n ** 52n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 55n - 1n, -(2n ** 55n)),
  fc.integer({ min: 0, max: 55 }).chain((bits) => fc.bigInt({ min: -(2n ** BigInt(bits)), max: 2n ** BigInt(bits) - 1n })),
  // A time near the clock's.
  fc.bigInt({ min: -100_000_000n, max: 100_000_000n }).map((away) => BigInt(nowMs) + away),
);

/** A change of a state: one of its numbers becomes another, or one of its bytes, or the whole is another text. */
type Edit =
  | { readonly number: bigint; readonly at: number }
  | { readonly byte: number; readonly at: number }
  | { readonly text: Uint8Array };
const edits: fc.Arbitrary<readonly Edit[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ number, at: fc.nat(8) }) },
    { weight: 2, arbitrary: fc.record({ byte: fc.nat(255), at: fc.nat(200) }) },
    { weight: 1, arbitrary: fc.record({ text: fc.uint8Array({ maxLength: 80 }) }) },
  ),
  { minLength: 1, maxLength: 5 },
);

/** A state is seven bytes, a layout byte, and numbers of seven bytes. */
function edited(state: Buffer, edits: readonly Edit[]): Buffer {
  let bytes = Buffer.from(state);
  for (const edit of edits) {
    if ("text" in edit) bytes = Buffer.from(edit.text);
    else if (bytes.length === 0) continue;
    else if ("byte" in edit) bytes[edit.at % bytes.length] = edit.byte;
    else {
      const from = 8 + 7 * (edit.at % Math.max(1, Math.floor((bytes.length - 8) / 7)));
      let rest = BigInt.asUintN(56, edit.number);
      for (let i = Math.min(from + 6, bytes.length - 1); i >= from; i--) {
        bytes[i] = Number(rest & 255n);
        rest >>= 8n;
      }
    }
  }
  return bytes;
}

const digits = fc.oneof(
  number.map((value) => `${value < 0n ? -value : value}`),
  fc.integer({ min: 1, max: 400 }).map((length) => "9".repeat(length)),
);
const blockText = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(digits, digits, digits, digits).map((times) => times.join(" ")) },
  { weight: 1, arbitrary: fc.string() },
  { weight: 1, arbitrary: fc.constantFrom("0 99999999999999999999 0 0", "0 9007199254740991 0 0", "1 2 3", "0 1e300 0 0", "-1 5 0 0") },
);

/** Whole and finite numbers, and no wait that the policy cannot ask for. */
function checkDecision(decision: Decision, { policy }: Limit, isBlocked: boolean): void {
  checkNumbers(decision);
  const isWindow = policy.algorithm.includes("window");
  const longest = isWindow ? 3 * policy.spanMs : 3 * Math.max(policy.spanMs, tenYearsMs);
  const most = isBlocked ? Math.max(longest, 2 * longestBlockMs) : longest;
  expect(decision.resetAfterMs).toBeLessThanOrEqual(most);
  if (decision.cost <= decision.limit) expect(decision.retryAfterMs).toBeLessThanOrEqual(most);
}

const limits = [...everyState, ...largePolicies.map(([, policy]) => policy)];

describe.each(limits)("whatever is stored under a key of $stateKind, with a limit of $quota", (policy: Policy) => {
  it("its decisions are valid, its waits bounded by the policy, and other keys are decided", async () => {
    const name = `limit-${keys++}`;
    const limit = createLimit(name, policy);
    const neighbour = createLimit(`${name}-neighbour`, policy);
    await fc.assert(
      fc.asyncProperty(fc.option(edits), fc.option(blockText), fc.boolean(), async (edits, block, denyCache) => {
        const store = redisStore(redis, { clock, denyCache });
        const [key, other] = [`key-${keys++}`, `key-${keys++}`];
        const charged = await store.consume(limit, key, Math.ceil(policy.quota / 2), timeoutMs);
        if (keys % 4 === 0) await store.settle(limit, key, asCharge(charged), 3 * policy.quota, timeoutMs);
        const [redisKey] = (await redis.keys(`*{${key}}*`)) as [string];
        const state = edits && edited((await redis.getBuffer(redisKey)) as Buffer, edits);
        if (state) await redis.set(redisKey, state, "EX", 1000);
        if (block !== null) await redis.set(`floodgate:{${key}}:${name}:blocks`, block, "EX", 1000);
        const isBlocked = block !== null;

        const limiter = createLimiter({ name, policy, store, timeoutMs, onStoreError: "deny" });
        for (let i = 0; i < 6; i++) {
          const decision = await limiter.consume(key, { cost: i === 5 ? policy.quota : 1 });
          expect(decision.degraded).toBe(false);
          checkDecision(decision, limit, isBlocked);
        }
        const [first, , second, third, whole] = await Promise.all([
          store.consume(limit, key, 1, timeoutMs),
          store.consume(limit, other, 1, timeoutMs),
          store.consume(limit, key, 1, timeoutMs),
          store.consume(limit, key, 1, timeoutMs),
          store.consumeAll(
            [
              { limit, key, cost: 1 },
              { limit: neighbour, key, cost: 1 },
            ],
            timeoutMs,
          ),
        ]);
        for (const decision of [first, second, third, whole[0] as Decision, await store.peek(limit, key, timeoutMs)]) {
          checkDecision(decision, limit, isBlocked);
        }
        // Fails if core decides otherwise on the state than the script did.
        const seen = await store.keyState(limit, key, timeoutMs);
        checkDecision(seen.decision, limit, isBlocked);
        for (const cost of [0, 2 * policy.quota]) {
          const units = await store.settle(limit, key, asCharge(first), cost, timeoutMs);
          expect(Number.isFinite(units)).toBe(true);
        }
        checkDecision(await store.peek(limit, key, timeoutMs), limit, isBlocked);
        expect(await limiter.consume(other)).toMatchObject({ degraded: false });

        await store.unblock(name, key, timeoutMs);
        await store.reset(limit, key, timeoutMs);
        expect(await store.consume(limit, key, 1, timeoutMs)).toMatchObject({ allowed: true, remaining: policy.quota - 1 });
      }),
      runs(40),
    );
  });
});
