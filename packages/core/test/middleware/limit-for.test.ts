import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import {
  createLimiter,
  type FloodgateEvent,
  gcra,
  LimitedError,
  type LimitForOptions,
  leakyBucket,
  limitFor,
  type Policy,
  slidingWindowLog,
  tokenBucket,
} from "../../src/index.js";
import { FaultyStore } from "../faulty-store.js";

interface Job {
  readonly tenant: string | undefined;
  readonly kind?: string;
  readonly size?: number;
  used?: number;
}

const store = () => memoryStore({ clock: () => 1e12, maxKeys: 1000 });
const tenant = ({ tenant }: Job) => tenant;
const perTenant = { limit: 2, window: "1m", key: tenant } as const;
const a: Job = { tenant: "a" };

async function codeOf(run: () => unknown): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    return (error as { code?: unknown }).code ?? error;
  }
}

describe("a limit of contexts", () => {
  it("refuses options that are no object", () => {
    for (const options of [undefined, null, 5, "key", []]) expect(() => limitFor(options as never)).toThrow(/^limitFor/);
  });

  it("decides as a limiter with the same policy does", async () => {
    const policies: Policy[] = [
      slidingWindowLog({ limit: 5, window: "1m" }),
      tokenBucket({ capacity: 5, refill: 1, every: "1s" }),
      leakyBucket({ capacity: 5, leak: 1, every: "1s" }),
      gcra({ limit: 5, window: "1m" }),
    ];
    const step = fc.record({ waitMs: fc.nat(20_000), tenant: fc.constantFrom("a", "b"), size: fc.integer({ min: 1, max: 6 }) });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...policies), fc.array(step, { maxLength: 30 }), async (policy, steps) => {
        let nowMs = 1e12;
        const clock = () => nowMs;
        const limit = limitFor({ policy, key: tenant, cost: (job: Job) => job.size, store: memoryStore({ clock, maxKeys: 1000 }) });
        const limiter = createLimiter({ name: "default", policy, store: memoryStore({ clock, maxKeys: 1000 }) });
        for (const { waitMs, ...job } of steps) {
          nowMs += waitMs;
          const decision = limiter.consume(job.tenant, { cost: job.size });
          const answer = await limit.check(job);
          expect(answer.decision).toEqual(decision);
          expect(answer).toMatchObject({ allowed: decision.allowed, all: [decision], delayMs: decision.delayMs });
          expect(answer.retryAfterMs).toBe(decision.allowed ? 0 : decision.retryAfterMs);
        }
      }),
    );
  });

  it("counts each check, also of the same context, a frozen one, and one that is no object", async () => {
    const limit = limitFor({ ...perTenant, store: store() });
    const frozen = Object.freeze({ ...a });
    expect([await limit.check(frozen), await limit.check(frozen), await limit.check(frozen)].map(({ allowed }) => allowed)).toEqual([
      true,
      true,
      false,
    ]);
    const texts = limitFor<string>({ limit: 1, window: "1m", key: (text) => text, name: "texts", store: store() });
    expect([(await texts.check("x")).allowed, (await texts.check("x")).allowed]).toEqual([true, false]);
  });

  it("throws FLOODGATE_LIMITED from enforce, with the decision, the wait and a sentence for the caller", async () => {
    const limit = limitFor({ ...perTenant, name: "jobs", store: store() });
    expect((await limit.enforce(a)).decision).toMatchObject({ allowed: true, remaining: 1 });
    await limit.enforce(a);
    const error = (await limit.enforce(a).catch((error: unknown) => error)) as LimitedError;
    expect(error).toBeInstanceOf(LimitedError);
    expect(error).toMatchObject({ code: "FLOODGATE_LIMITED", retryAfterMs: error.decision?.retryAfterMs, decision: { name: "jobs" } });
    expect(error.message).toBe(`Rate limit "jobs" exceeded. Try again in ${Math.ceil(error.retryAfterMs / 1000)} seconds.`);
    const large = limitFor({ ...perTenant, cost: (job: Job) => job.size, store: store() });
    await expect(large.enforce({ tenant: "a", size: 3 })).rejects.toMatchObject({
      retryAfterMs: Number.POSITIVE_INFINITY,
      message: expect.stringContaining("costs 3, more than the limit of 2 ever allows"),
    });
  });

  it("checks several rules in one step, with matches, plans, names of keys and shadow mode", async () => {
    const limit = limitFor<Job>({
      store: store(),
      keys: { tenant },
      plan: ({ kind }) => kind,
      rules: [
        { name: "all", key: "global", limit: 100, window: "1m" },
        { name: "tenant", key: "tenant", limit: 1, window: "1m", plans: { pro: { limit: 2 } } },
        { name: "large", key: ["global", "tenant"], match: ({ size = 0 }) => size > 10, limit: 0, window: "1m" },
        { name: "watched", key: "secret:tenant", limit: 1, window: "1h", mode: "shadow" },
      ],
      onEvent: () => undefined,
    });
    expect((await limit.check({ tenant: "a", kind: "pro" })).all.map(({ name }) => name)).toEqual(["all", "tenant"]);
    expect(await limit.check({ tenant: "a", kind: "pro" })).toMatchObject({ allowed: true, decision: { name: "tenant", remaining: 0 } });
    expect(await limit.check({ tenant: "a" })).toMatchObject({ allowed: false, decision: { name: "tenant" } });
    expect(await limit.check({ tenant: "b", size: 11 })).toMatchObject({ allowed: false, decision: { name: "large", limit: 0 } });
    expect(await limit.limiters.get("all")?.peek("global")).toMatchObject({ remaining: 98 });
  });

  it("lets pass what skip, exempt or a cost of 0 leave out, without a decision", async () => {
    const limit = limitFor({
      ...perTenant,
      limit: 0,
      skip: ({ kind }: Job) => kind === "ping",
      exempt: { keys: ["vip"] },
      cost: ({ size }) => size ?? 1,
      store: store(),
      onEvent: () => undefined,
    });
    for (const job of [{ ...a, kind: "ping" }, { tenant: "vip" }, { ...a, size: 0 }]) {
      expect(await limit.enforce(job)).toMatchObject({ allowed: true, decision: undefined, all: [], retryAfterMs: 0 });
    }
    expect(await limit.check(a)).toMatchObject({ allowed: false });
  });

  it("fails for a context without a key, unless onMissingKey says what then", async () => {
    const keyless: Job = { tenant: undefined };
    const limitOf = (onMissingKey?: "skip" | "reject") => limitFor({ ...perTenant, store: store(), ...(onMissingKey && { onMissingKey }) });
    expect(await codeOf(() => limitOf().check(keyless))).toBe("FLOODGATE_MISSING_KEY");
    await expect(limitOf().check(keyless)).rejects.toThrow('what then: "skip" or "reject".');
    expect(await limitOf("skip").check(keyless)).toMatchObject({ allowed: true, decision: undefined });
    expect(await limitOf("reject").check(keyless)).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY });
    await expect(limitOf("reject").enforce(keyless)).rejects.toMatchObject({
      code: "FLOODGATE_LIMITED",
      message: expect.stringContaining("no key"),
    });
  });

  it("bans a key after repeated rejections", async () => {
    const limit = limitFor({ ...perTenant, ban: { after: 2, within: "1h", for: "1d" }, store: store() });
    for (let i = 0; i < 4; i++) await limit.check(a);
    expect((await limit.check(a)).retryAfterMs).toBe(86_400_000);
  });

  it("charges the real cost with settle, and gives the charge back with refund", async () => {
    const events: FloodgateEvent[] = [];
    const limit = limitFor<Job>({
      policy: tokenBucket({ capacity: 100, refill: 1, every: "1h" }),
      key: tenant,
      cost: 10,
      settle: "used",
      costs: { used: ({ used }) => used },
      store: store(),
      onEvent: (event) => event.type !== "request" && events.push(event),
    });
    const job: Job = { tenant: "a" };
    const answer = await limit.check(job);
    job.used = 60;
    await answer.settle();
    expect(await limit.limiter.peek("a")).toMatchObject({ remaining: 40 });
    await answer.refund();
    expect(await limit.limiter.peek("a")).toMatchObject({ remaining: 40 });
    await (await limit.check(job)).refund();
    expect(await limit.limiter.peek("a")).toMatchObject({ remaining: 40 });
    expect(events.map(({ type }) => type)).toEqual(["allowed", "settled", "allowed", "refunded"]);
    await (await limitFor({ ...perTenant, skip: () => true, store: store() }).check(a)).refund();
  });

  it("keeps the process alive while a context waits in enforce for its turn", async () => {
    const limit = limitFor({ policy: leakyBucket({ capacity: 2, leak: 1, every: "1h" }), key: tenant, store: store() });
    await limit.enforce(a);
    const timers = vi.spyOn(globalThis, "setTimeout");
    const waits = limit.enforce(a);
    await new Promise(setImmediate);
    expect(timers.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())).toEqual([true]);
    timers.mockRestore();
    limit.close();
    await waits;
  });

  it("holds a context in enforce until its turn in a queue; close releases it", async () => {
    vi.useFakeTimers();
    try {
      const limit = limitFor({ policy: leakyBucket({ capacity: 5, leak: 1, every: "1s" }), key: tenant, store: store() });
      const passed: number[] = [];
      const start = Date.now();
      for (let i = 0; i < 4; i++) void limit.enforce(a).then(() => passed.push(Date.now() - start));
      await vi.advanceTimersByTimeAsync(2500);
      expect(passed).toEqual([0, 1000, 2000]);
      expect(await limit.check(a)).toMatchObject({ allowed: true, delayMs: 4000 });
      limit.close();
      await vi.advanceTimersByTimeAsync(0);
      expect(passed).toEqual([0, 1000, 2000, 2500]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("passes or rejects by onStoreError while the store fails, and says so", async () => {
    const failing = () => {
      const faulty = new FaultyStore(store());
      faulty.fault = "rejects";
      return faulty;
    };
    const onEvent = () => undefined;
    expect(await limitFor({ ...perTenant, store: failing(), onEvent }).check(a)).toMatchObject({
      allowed: true,
      decision: { degraded: true },
    });
    const closed = limitFor({ ...perTenant, store: failing(), onStoreError: "deny", onEvent });
    await expect(closed.enforce(a)).rejects.toThrow("The limit cannot be checked at the moment. Try again in 1 second.");
  });

  it("fails with what a function of the app throws, or rejects with", async () => {
    const boom = new Error("boom");
    const limitOf = (key: (job: Job) => never | Promise<never>) => limitFor({ ...perTenant, key, store: store() });
    const thrower = () => {
      throw boom;
    };
    await expect(limitOf(thrower).check(a)).rejects.toBe(boom);
    await expect(limitOf(() => Promise.reject(boom)).enforce(a)).rejects.toBe(boom);
  });
});

const noLimit = { limit: undefined, window: undefined };

describe("what only HTTP requests have is refused when the limit is made", () => {
  const rule = { name: "a", limit: 1, window: "1m", key: "global" } as const;
  it.each<[string, object, string]>([
    ["no key", { key: undefined }, "FLOODGATE_INVALID_OPTION"],
    ["no store", { store: undefined }, "FLOODGATE_INVALID_OPTION"],
    ["a misspelt option", { kye: tenant }, "FLOODGATE_UNKNOWN_OPTION"],
    ["headers", { headers: "legacy" }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["body", { body: "no" }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["refundWhen", { refundWhen: () => true }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["clientIp", { clientIp: () => "192.0.2.1" }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["ipv6Prefix", { ipv6Prefix: 64 }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["decisionName", { decisionName: "limit" }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["ambiguousPath", { ambiguousPath: "count" }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["addresses that are exempt", { exempt: { ips: ["10.0.0.0/8"] } }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["counting by address", { key: "ip" }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["counting by route", { key: ["global", "route"] }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["counting by header", { key: "secret:header:authorization" }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["an address in place of a key", { onMissingKey: "ip" }, "FLOODGATE_CONFLICTING_OPTIONS"],
    [
      "a rule that matches a path",
      { key: undefined, ...noLimit, rules: [{ ...rule, match: { path: "/a" } }] },
      "FLOODGATE_CONFLICTING_OPTIONS",
    ],
    ["a rule without a key", { key: undefined, ...noLimit, rules: [{ ...rule, key: undefined }] }, "FLOODGATE_INVALID_OPTION"],
    ["a rule that counts by address", { ...noLimit, rules: [{ ...rule, key: "ip" }] }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["addresses that are exempt from all rules", { ...noLimit, rules: [rule], exempt: { ips: [] } }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["addresses that are exempt from a rule", { ...noLimit, rules: [{ ...rule, exempt: { ips: [] } }] }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["refundWhen of a rule", { ...noLimit, rules: [{ ...rule, refundWhen: "5xx" }] }, "FLOODGATE_CONFLICTING_OPTIONS"],
    ["ambiguousPath of a rule", { ...noLimit, rules: [{ ...rule, ambiguousPath: "count" }] }, "FLOODGATE_CONFLICTING_OPTIONS"],
  ])("%s", async (_, option, code) => {
    const options = { ...perTenant, store: store(), ...option } as unknown as LimitForOptions<Job, string>;
    expect(await codeOf(() => limitFor(options))).toBe(code);
  });

  it("takes the key of rules from the limit, and live rules", async () => {
    const source = {
      current: { rules: [{ name: "jobs", key: "tenant", limit: 1, window: "1m" as const }] },
      subscribe: () => () => undefined,
    };
    const live = limitFor<Job>({ rules: source as never, keys: { tenant }, store: store() });
    expect([(await live.check(a)).allowed, (await live.check(a)).allowed]).toEqual([true, false]);
    const shared = limitFor({ key: tenant, rules: [{ name: "a", limit: 1, window: "1m" }], store: store() });
    expect([(await shared.check(a)).allowed, (await shared.check(a)).allowed]).toEqual([true, false]);
  });
});

describe("its types", () => {
  it("infer the context from functions, and know the names of keys", () => {
    const inferred = limitFor({ ...perTenant, store: store() });
    // @ts-expect-error the context is a job
    void (() => inferred.check("text"));
    limitFor({ limit: 1, window: "1m", keys: { tenant }, key: "tenant", store: store() });
    // @ts-expect-error no such key
    expect(() => limitFor({ limit: 1, window: "1m", keys: { tenant }, key: "tennant", store: store() })).toThrow("tenant");
    // @ts-expect-error only HTTP has headers
    expect(() => limitFor({ ...perTenant, headers: false, store: store() })).toThrow("HTTP");
  });
});
