import type { Decision, FloodgateEvent } from "@floodgate/core";
import { type Outcome, RateLimit, type RequestReader } from "@floodgate/core/adapter";
import type { PlainRule } from "@floodgate/core/rules";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { simulate, watchShadowRules } from "../src/index.js";
import { logOf } from "./logs.js";

interface Request {
  readonly afterMs: number;
  readonly ip: string;
  readonly method: string;
  readonly path: string;
  readonly user: string | undefined;
  readonly plan: string | undefined;
  readonly items: number;
}

const count = fc.integer({ min: 1, max: 6 });
const time = fc.constantFrom<"1s" | "10s" | "1m">("1s", "10s", "1m");
const policy = fc.oneof(
  fc.record({ algorithm: fc.constant("fixed-window" as const), limit: count, window: time }),
  fc.record({ algorithm: fc.constant("sliding-window-log" as const), limit: count, window: time, countRejected: fc.boolean() }),
  fc.record({ algorithm: fc.constant("sliding-window-counter" as const), limit: count, window: time, buckets: fc.constantFrom(1, 5) }),
  fc.record({
    algorithm: fc.constant("token-bucket" as const),
    capacity: count,
    refill: count,
    every: time,
    style: fc.constantFrom<"smooth" | "interval">("smooth", "interval"),
  }),
  fc.record({ algorithm: fc.constant("leaky-bucket" as const), capacity: count, leak: count, every: time }),
  fc.record({ algorithm: fc.constant("gcra" as const), limit: count, window: time, burst: count }),
);
const rule = fc.record(
  {
    policy,
    match: fc.constantFrom<NonNullable<PlainRule["match"]>>({ method: "POST" }, { path: "/a/:id" }, { path: "/a/*", method: "GET" }),
    key: fc.constantFrom<NonNullable<PlainRule["key"]>>("ip", "global", "user", ["ip", "user"]),
    onMissingKey: fc.constantFrom<"skip" | "reject">("skip", "reject"),
    cost: fc.constant("items"),
    plans: policy.map((pro) => ({ pro })),
    mode: fc.constant("shadow" as const),
    exempt: fc.constantFrom({ ips: ["10.0.0.2"] }, { keys: ["ann"] }),
    ban: fc.record({ after: fc.integer({ min: 1, max: 3 }), within: time, for: time }),
  },
  { requiredKeys: ["policy"] },
);
const request: fc.Arbitrary<Request> = fc.record({
  afterMs: fc.oneof(fc.constant(0), fc.nat(500), fc.nat(20_000)),
  ip: fc.constantFrom("10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2"),
  method: fc.constantFrom("GET", "HEAD", "POST"),
  path: fc.constantFrom("/", "/a/1", "/A/%31/?b=c", "/a/1/2"),
  user: fc.constantFrom("ann", "bob", undefined),
  plan: fc.constantFrom("pro", "free", undefined),
  items: fc.nat(3),
});

const reader: RequestReader<Request> = {
  method: ({ method }) => method,
  path: ({ path }) => path,
  header: () => undefined,
  remoteAddress: ({ ip }) => ip,
  clientIp: ({ ip }) => ip,
  trustsProxy: () => true,
  route: () => undefined,
};

/** What a rule has decided. */
interface Decided {
  readonly key: string;
  readonly atMs: number;
  readonly decision: Decision;
}

/** Decides requests as an app does. */
function inProduction(rules: readonly PlainRule[], requests: readonly Request[]) {
  let nowMs = startMs;
  const store = memoryStore({ maxKeys: 10_000, clock: () => nowMs });
  const decided = new Map<string, Decided[]>(rules.map(({ name }) => [name, []]));
  const events: FloodgateEvent[] = [];
  const limit = new RateLimit<Request>(
    "test",
    {
      rules: { current: { rules }, subscribe: () => () => undefined },
      store,
      keys: { user: ({ user }) => user },
      costs: { items: ({ items }) => items },
      plan: ({ plan }) => plan,
      onEvent: (event) => events.push(event),
    },
    [],
    reader,
    () => store,
  );
  const watch = watchShadowRules({ top: 100 });
  let rejected = 0;
  for (const request of requests) {
    nowMs += request.afterMs;
    const { action, checks, decisions } = limit.decide({ ...request }) as Outcome;
    if (action === "reject") rejected++;
    checks.forEach(({ rule, key }, i) => {
      const decision = decisions[i] as Decision;
      if (action === "pass" || !decision.allowed) decided.get(rule.name)?.push({ key, atMs: nowMs, decision });
    });
  }
  const watched = watch.simulation().rules;
  watch.stop();
  limit.close();
  const counted = (name: string, type: FloodgateEvent["type"]) =>
    events.filter((event) => event.type === type && "name" in event && event.name === name).length;
  return { rejected, decided, counted, watched };
}

const startMs = Date.UTC(2026, 10, 20, 12, 0, 0);

/** The most units of one key in a window that ends with a request. */
function mostUnits(all: readonly Decided[], windowMs: number): number {
  const units = all.map(({ key, atMs }, end) =>
    all.slice(0, end + 1).reduce((sum, other) => sum + (other.key === key && other.atMs > atMs - windowMs ? other.decision.cost : 0), 0),
  );
  return Math.max(0, ...units);
}

it("a replay of a log decides as the app would have, and measures what it decides", async () => {
  const sets = fc.array(rule, { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(sets, fc.array(request, { minLength: 1, maxLength: 60, size: "max" }), async (set, requests) => {
      const rules = set.map((rule, i): PlainRule => ({ name: `r${i}`, onMissingKey: "skip", ...rule }));
      const { rejected, decided, counted, watched } = inProduction(rules, requests);
      let timeMs = startMs;
      const lines = requests.map(({ afterMs, ...fields }) => {
        timeMs += afterMs;
        return JSON.stringify({ time: new Date(timeMs).toISOString(), ...fields });
      });
      const options = { keys: { user: "user" }, costs: { items: "items" }, plan: "plan", top: 100 };
      const simulation = await simulate([logOf(lines)], { rules }, options);
      expect(simulation).toMatchObject({ requests: requests.length, rejected, skipped: 0, failed: {} });
      for (const rule of simulation.rules)
        if (rule.mode === "shadow")
          expect(watched.find(({ name }) => name === rule.name)).toMatchObject({
            ...rule,
            memory: expect.anything(),
            by: expect.anything(),
          });
      for (const { name, policy, topLimited, heaviest, ...measured } of simulation.rules) {
        const all = decided.get(name) ?? [];
        const [allowed, limited] = [all.filter(({ decision }) => decision.allowed), all.filter(({ decision }) => !decision.allowed)];
        const delays = allowed.map(({ decision }) => decision.delayMs).filter((ms) => ms > 0);
        expect(measured).toMatchObject({
          requests: all.length,
          allowed: allowed.length,
          limited: limited.length,
          clients: new Set(all.map(({ key }) => key)).size,
          clientsLimited: new Set(limited.map(({ key }) => key)).size,
          delayed: delays.length,
          queuedMs: delays.reduce((sum, ms) => sum + ms, 0),
          longestQueuedMs: Math.max(0, ...delays),
          bans: counted(name, "banned"),
          exempt: counted(name, "exempt"),
          keyless: counted(name, "missing-key"),
          worstWindow: { units: mostUnits(allowed, policy.spanMs) },
          burst: { units: mostUnits(allowed, 1000) },
          unmeasured: 0,
        });
        for (const { key, requests, limited, peak } of heaviest) {
          const own = all.filter((one) => one.key === key);
          const rejections = own.filter(({ decision }) => !decision.allowed).length;
          expect({ key, requests, limited, peak }).toEqual({
            key,
            requests: own.length,
            limited: rejections,
            peak: mostUnits(own, policy.spanMs),
          });
        }
        expect(topLimited.length).toBe(measured.clientsLimited);
      }
    }),
    runs(300),
  );
});
