import { createLimiter, fixedWindow, type Limiter } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Watch } from "../../src/collect/watch.js";
import type { Send } from "../../src/share/redis.js";
import { Share } from "../../src/share/share.js";

// The commands that a share uses, on a clock that the test turns. The real Redis is in processes.long.test.ts.

class FakeRedis {
  readonly texts = new Map<string, { readonly text: string; readonly untilMs: number }>();
  readonly sets = new Map<string, Set<string>>();
  failure: Error | undefined;

  readonly send: Send = async (key, command, ...args) => {
    if (this.failure !== undefined) throw this.failure;
    const set = this.sets.get(key) ?? new Set();
    switch (command) {
      case "SET":
        if (args.includes("NX") && this.#get(key) !== null) return null;
        this.texts.set(key, { text: args[0] as string, untilMs: Date.now() + Number(args[2]) });
        return "OK";
      case "GET":
        return this.#get(key);
      case "MGET":
        return [key, ...args].map((each) => this.#get(each));
      case "DEL":
        return Number(this.texts.delete(key));
      case "SADD":
        this.sets.set(key, set.add(args[0] as string));
        return 1;
      case "SREM":
        for (const member of args) set.delete(member);
        return args.length;
      case "SMEMBERS":
        return [...set];
      case "PEXPIRE":
        return 1;
      default:
        throw new Error(command);
    }
  };

  #get(key: string): string | null {
    const held = this.texts.get(key);
    return held === undefined || held.untilMs <= Date.now() ? null : held.text;
  }
}

let redis: FakeRedis;
let limiter: Limiter<"sync">;
let watches: Watch[];
let shares: Share[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 0, 1) });
  redis = new FakeRedis();
  limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 2, window: "1d" }), store: memoryStore() });
  watches = [new Watch(), new Watch()];
  shares = watches.map((watch) => new Share(watch, redis.send, "test"));
});

afterEach(() => {
  vi.useRealTimers();
  for (const watch of watches) watch.close();
  limiter.close();
});

/** Lets time pass, with each process publishing once a second. */
async function pass(seconds: number, publishing: readonly Share[]): Promise<void> {
  for (let i = 0; i < seconds; i++) {
    vi.setSystemTime(Date.now() + 1000);
    for (const watch of watches) watch.tick();
    for (const share of publishing) await share.publish(Date.now());
  }
}

describe("what processes share", () => {
  it("is read by each of them, this process first", async () => {
    for (let i = 0; i < 3; i++) limiter.consume("ann");
    await pass(1, shares);
    const { reports, trouble, secret } = await (shares[1] as Share).read();
    expect(reports.map(({ instance }) => instance.id)).toEqual([watches[1]?.id, watches[0]?.id]);
    expect(reports.map(({ totals }) => totals[0]?.counts)).toEqual(Array(2).fill({ allowed: 2, limited: 1 }));
    expect(trouble).toBeUndefined();
    expect(secret).toBe((await (shares[0] as Share).read()).secret);
  });

  it("is gone five seconds after a process, but what it counted stays in the hour and the day", async () => {
    limiter.consume("ann");
    await pass(60, shares);
    const [first, second] = shares as [Share, Share];
    const past = async (): Promise<unknown[]> =>
      Promise.all(
        (["minute", "hour", "day"] as const).map(async (range) =>
          (await second.history(range, Date.now())).rules[0]?.series.allowed?.reduce((a, b) => a + b),
        ),
      );
    expect(await past()).toEqual([2, 2, undefined]);
    await pass(5, [first, second]);
    expect(await past()).toEqual([undefined, 2, 2]);
    await pass(5, [second]);
    expect((await second.read()).reports).toHaveLength(1);
    expect(await past()).toEqual([undefined, 2, 2]);
    await pass(3600, []);
    expect(await past()).toEqual([undefined, undefined, 2]);
  });

  it("goes on in open pages after the clock has stepped back", async () => {
    const newest = async (key: string) => {
      limiter.consume(key);
      await pass(4, shares);
      const { startMs, points, rules } = await (shares[0] as Share).history("minute", Date.now());
      return { agoMs: Date.now() - startMs - points * 1000, allowed: rules[0]?.series.allowed?.at(-1) };
    };
    expect(await newest("ann")).toEqual({ agoMs: 3000, allowed: 2 });
    vi.setSystemTime(Date.now() - 3_600_000);
    expect(await newest("bob")).toEqual({ agoMs: 3000, allowed: 2 });
  });

  it("is gone at once when a dashboard is closed", async () => {
    await pass(1, shares);
    await shares[0]?.close();
    expect((await (shares[1] as Share).read()).reports).toHaveLength(1);
  });

  it("is this process's alone if Redis fails, and says why", async () => {
    await pass(1, shares);
    redis.failure = new Error("LOADING");
    await pass(1, shares);
    const { reports, trouble } = await (shares[0] as Share).read();
    expect([reports.length, trouble]).toEqual([1, "Redis failed: LOADING"]);
    expect((await (shares[0] as Share).history("minute", Date.now())).points).toBe(60);
  });

  it("is this process's alone while it cannot write, as in a full Redis or a replica, and shared again once it can", async () => {
    const { send } = redis;
    let isFull = true;
    const full: Send = (key, command, ...args) =>
      isFull && command === "SET" ? Promise.reject(new Error("OOM")) : send(key, command, ...args);
    const share = new Share(watches[0] as Watch, full, "test");
    await pass(1, [share, shares[1] as Share]);
    const { reports, trouble } = await share.read();
    expect([reports.length, trouble]).toEqual([1, "Redis failed: OOM"]);
    isFull = false;
    await pass(1, [share, shares[1] as Share]);
    expect(await share.read()).toMatchObject({ reports: { length: 2 }, trouble: undefined });
  });

  it("is read as far as it can be shown", async () => {
    await pass(1, shares);
    const other = [...redis.texts.keys()].find((key) => key.endsWith(`instance:${watches[0]?.id}`)) as string;
    const hostile = ["null", "1", "{", "{}", "[]", '{"instance":{"id":"x"},"rules":1}', `"${"x".repeat(5_000_000)}"`];
    for (const text of hostile) {
      redis.texts.set(other, { text, untilMs: Number.POSITIVE_INFINITY });
      const { reports, trouble } = await (shares[1] as Share).read();
      expect([text.slice(0, 50), reports.length, trouble]).toEqual([text.slice(0, 50), 1, undefined]);
    }
  });
});
