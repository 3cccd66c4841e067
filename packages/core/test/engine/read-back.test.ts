import assert from "node:assert/strict";
import fc from "fast-check";
import { parseRateLimit } from "ratelimit-header-parser";
import { parseDictionary, parseItem, parseList, serializeList } from "structured-headers";
import type { HeaderFormat } from "../../src/adapter.js";
import {
  type Decision,
  fixedWindow,
  gcra,
  leakyBucket,
  type Store,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../src/index.js";
import { mostRestrictive } from "../../src/store.js";
import { describe, it, memory, type Response } from "./app.js";

const few = fc.integer({ min: 1, max: 5 });
/** Milliseconds, including fractions of a second. */
const spanMs = fc.integer({ min: 100, max: 100_000 });
const span = spanMs.map((n) => `${BigInt(n)}ms` as const);

const anyPolicy = fc.oneof(
  fc.record({ limit: few, window: span }).map(fixedWindow),
  fc.record({ limit: few, window: span }).map(slidingWindowLog),
  fc.record({ limit: few, window: span }).map(slidingWindowCounter),
  fc.record({ capacity: few, refill: few, every: span }).map(tokenBucket),
  fc.record({ limit: few, window: span, burst: few }).map(gcra),
  // A queue of one place delays no request, so the test need not wait.
  fc.record({ capacity: fc.constant(1), leak: few, every: span }).map(leakyBucket),
);

/** A function of the request: a constant cost above the limit is refused. */
const anyCost = few.map((cost) => () => cost);

const anyRules = fc.uniqueArray(fc.record({ name: fc.stringMatching(/^[\x20-\x7e]{1,20}$/), policy: anyPolicy, cost: anyCost }), {
  selector: ({ name }) => name,
  minLength: 1,
  maxLength: 3,
});

/** The pauses between requests. */
const anyPauses = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1000 }), spanMs), { minLength: 2, maxLength: 6 });

const seconds = (ms: number): number => Math.ceil(ms / 1000);
const waitMs = ({ retryAfterMs, resetAfterMs, policy }: Decision): number =>
  retryAfterMs > 0 && retryAfterMs !== Number.POSITIVE_INFINITY ? retryAfterMs : Math.min(resetAfterMs, policy.spanMs);

/** Parses a list header, and checks that it is in canonical form (whole numbers without a fraction). */
function list(response: Response, header: string): [unknown, Record<string, unknown>][] {
  const text = response.headers[header] as string;
  const parsed = parseList(text);
  assert.equal(serializeList(parsed), text);
  return parsed.map(([value, parameters]) => [value, Object.fromEntries(parameters)]);
}

function readBackOldPolicies(response: Response, decisions: readonly Decision[]): void {
  assert.deepEqual(
    list(response, "ratelimit-policy"),
    decisions.map(({ limit, policy }) => [limit, { w: seconds(policy.spanMs) }]),
  );
}

/** Reads the headers with a client's parser; the reset in seconds since the epoch, or from now. */
function parsed(response: Response, prefix: RegExp, reset: "unix" | "seconds"): unknown[] {
  const headers = Object.fromEntries(Object.entries(response.headers as Record<string, string>).filter(([name]) => prefix.test(name)));
  const before = Date.now();
  const found = parseRateLimit(headers, { reset });
  const resetMs = (found?.reset?.getTime() ?? Number.NaN) - (reset === "unix" ? 0 : before);
  return [found?.limit, found?.remaining, Math.floor(resetMs / 1000)];
}

/** Reads each format back and compares it with all decisions, or with the reported one. */
const readers: Record<HeaderFormat, (response: Response, decisions: readonly Decision[], reported: Decision, nowMs: number) => void> = {
  standard(response, decisions) {
    assert.deepEqual(
      list(response, "ratelimit-policy"),
      decisions.map(({ name, limit, policy }) => [name, { q: limit, ...(policy.spanMs < 1000 ? {} : { w: seconds(policy.spanMs) }) }]),
    );
    assert.deepEqual(
      list(response, "ratelimit"),
      decisions.map((decision) => [
        decision.name,
        { r: decision.remaining, ...(decision.retryAfterMs === Number.POSITIVE_INFINITY ? {} : { t: seconds(waitMs(decision)) }) },
      ]),
    );
  },
  "draft-7"(response, decisions, reported) {
    const expected = [reported.limit, reported.remaining, seconds(waitMs(reported))];
    const fields = parseDictionary(response.headers["ratelimit"] as string);
    assert.deepEqual(
      ["limit", "remaining", "reset"].map((field) => fields.get(field)?.[0]),
      expected,
    );
    assert.deepEqual(parsed(response, /^ratelimit$/, "seconds"), expected);
    readBackOldPolicies(response, decisions);
  },
  "draft-6"(response, decisions, reported) {
    const expected = [reported.limit, reported.remaining, seconds(waitMs(reported))];
    assert.deepEqual(
      ["limit", "remaining", "reset"].map((field) => parseItem(response.headers[`ratelimit-${field}`] as string)[0]),
      expected,
    );
    assert.deepEqual(parsed(response, /^ratelimit-/, "seconds"), expected);
    readBackOldPolicies(response, decisions);
  },
  legacy(response, _, reported, nowMs) {
    const expected = [reported.limit, reported.remaining, seconds(nowMs + waitMs(reported))];
    assert.deepEqual(parsed(response, /^x-ratelimit-/, "unix"), expected);
    assert.equal(response.headers["x-ratelimit-retry-after"], response.headers["retry-after"]);
  },
};

/** Wraps a store and records its last answer. */
function recording(store: Store<"sync">): { store: Store<"sync">; last: () => readonly Decision[] } {
  let last: readonly Decision[] = [];
  const watching: Store<"sync"> = {
    mode: "sync",
    consume(...check) {
      const decision = store.consume(...check);
      last = [decision];
      return decision;
    },
    consumeAll(checks) {
      const decisions = store.consumeAll(checks);
      last = decisions;
      return decisions;
    },
    peek: (...look) => store.peek(...look),
    settle: (...charge) => store.settle(...charge),
    reset: (...which) => store.reset(...which),
    block: (...blocked) => store.block(...blocked),
    unblock: (...which) => store.unblock(...which),
    keyState: (...which) => store.keyState(...which),
  };
  return { store: watching, last: () => last };
}

/** Third-party parsers read the decisions back from the headers, for any policies, costs and states. */
describe("headers for third-party parsers", () => {
  for (const format of Object.keys(readers) as HeaderFormat[]) {
    it(`headers: "${format}" parse back to the decisions`, async (web) => {
      await fc.assert(
        fc.asyncProperty(anyRules, anyPauses, async (rules, pauses) => {
          const { store, last } = recording(memory(() => web.nowMs));
          const app = await web.start({ rules, headers: format, store });
          for (const pause of pauses) {
            web.nowMs += pause;
            const response = await app.get();
            const decisions = last();
            const rejecting = decisions.filter(({ allowed }) => !allowed);
            const reported = mostRestrictive(decisions);
            readers[format](response, decisions, reported, web.nowMs);
            assert.equal(response.status, rejecting.length === 0 ? 200 : 429);
            if (rejecting.length === 0) continue;
            const retryAfter = response.headers["retry-after"] as string | undefined;
            const never = reported.retryAfterMs === Number.POSITIVE_INFINITY;
            assert.equal(retryAfter, never ? undefined : `${Math.max(1, seconds(reported.retryAfterMs))}`);
            assert.deepEqual(
              [response.body["violated-policies"], response.body["retry-after"]],
              [rejecting.map(({ name }) => name), never ? undefined : Number(retryAfter)],
            );
          }
        }),
        { numRuns: 15 },
      );
    });
  }

  it("a client that waits for Retry-After is served", async (web) => {
    await fc.assert(
      fc.asyncProperty(anyRules, async (rules) => {
        const app = await web.start({ rules, store: memory(() => web.nowMs) });
        for (let i = 0; i < 8; i++) {
          const response = await app.get();
          if (response.status === 200) continue;
          const retryAfter = response.headers["retry-after"] as string | undefined;
          if (retryAfter === undefined) break;
          web.nowMs += Number(retryAfter) * 1000;
          assert.equal((await app.get()).status, 200);
        }
      }),
      { numRuns: 15 },
    );
  });
});
