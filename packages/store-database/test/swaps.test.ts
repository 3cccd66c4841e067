import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Decision, fixedWindow, gcra, type Policy, type Store, slidingWindowLog } from "@floodgate/core";
import { asCharge, createLimit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { expectGarbage } from "../../../test/garbage.js";
import { runs } from "../../../test/runs.js";
import { type Change, type DatabaseDriver, type DecideAgain, databaseStore, type Swap, type ValidTime } from "../src/index.js";
import { MapDriver } from "./map-driver.js";

const patienceMs = 30_000;
let names = 0;
const limitOf = (policy: Policy) => createLimit(`limit-${names++}`, policy);
const yearly = (limit: number) => limitOf(fixedWindow({ limit, window: "365d" }));

/** A database that tells its calls, takes a while for each, and fails. */
class RemoteDriver extends MapDriver {
  readonly calls: string[] = [];
  /** Turns of the event loop that a call takes on each way. */
  turns = (): number => 0;
  /** What goes wrong with a call: before or after the database has done it. */
  fault = (): "before" | "after" | undefined => undefined;
  /** Whether it decides again where a row has changed, as a database does that locks. */
  decidesAgain = false;

  override load(keys: readonly string[]) {
    return this.#call("load", () => super.load(keys));
  }

  override swap(changes: readonly Change[], valid: ValidTime, decideAgain?: DecideAgain) {
    return this.#call("swap", () => super.swap(changes, valid, this.decidesAgain ? decideAgain : undefined));
  }

  override swapMany(swaps: readonly Swap[]) {
    return this.#call("swapMany", () => super.swapMany(swaps));
  }

  async #call<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.calls.push(name);
    const fault = this.fault();
    await this.#travel();
    if (fault === "before") throw new Error("connection lost");
    const answer = await work();
    await this.#travel();
    if (fault === "after") throw new Error("connection lost");
    return answer;
  }

  async #travel(): Promise<void> {
    for (let left = this.turns(); left > 0; left--) await sleep(0);
  }

  async during(work: () => unknown): Promise<string[]> {
    this.calls.length = 0;
    await work();
    return [...this.calls];
  }
}

async function passed(decisions: readonly (Decision | Promise<Decision>)[]): Promise<number> {
  return (await Promise.all(decisions)).filter(({ allowed }) => allowed).length;
}

describe("the round trips of a decision", () => {
  it("are two for a new key, and one for a key that this process saw last", async () => {
    const driver = new RemoteDriver();
    const store = databaseStore(driver);
    const limit = yearly(10);
    expect(await driver.during(() => store.consume(limit, "a", 1, patienceMs))).toEqual(["load", "swap"]);
    expect(await driver.during(() => store.consume(limit, "a", 1, patienceMs))).toEqual(["swap"]);
    expect(await driver.during(() => store.peek(limit, "a", patienceMs))).toEqual(["load"]);
    expect(await driver.during(() => store.peek(limit, "b", patienceMs))).toEqual(["load"]);
  });

  it("are two after another process has changed the key: the first answers what is there now", async () => {
    const driver = new RemoteDriver();
    const [one, other] = [databaseStore(driver), databaseStore(driver)];
    const limit = yearly(10);
    await one.consume(limit, "a", 1, patienceMs);
    await other.consume(limit, "a", 1, patienceMs);
    expect(await driver.during(() => one.consume(limit, "a", 1, patienceMs))).toEqual(["swap", "swap"]);
    expect((await one.peek(limit, "a", patienceMs)).remaining).toBe(7);
  });

  it("are shared by decisions that wait at the same moment, in their order", async () => {
    const driver = new RemoteDriver();
    const store = databaseStore(driver);
    const limit = yearly(150);
    let decisions: (Decision | Promise<Decision>)[] = [];
    const calls = await driver.during(async () => {
      decisions = Array.from({ length: 200 }, () => store.consume(limit, "hot", 1, patienceMs));
      await Promise.all(decisions);
    });
    expect(calls).toEqual(["load", "swap"]);
    const expected = Array.from({ length: 200 }, (_, i) => Math.max(149 - i, 0));
    expect((await Promise.all(decisions)).map(({ remaining }) => remaining)).toEqual(expected);
  });

  it("are shared by requests that wait at the same moment, although their keys differ, if the driver has swapMany", async () => {
    const driver = new RemoteDriver();
    const store = databaseStore(driver, { denyCache: false });
    const [limit, other] = [yearly(10), yearly(1)];
    const ask = async (): Promise<number[]> => {
      const single = Array.from({ length: 100 }, (_, i) => store.consume(limit, `key-${i}`, 1, patienceMs));
      const checks = ["a", "b"].map((key) => ({ limit: other, key, cost: 1 }));
      const several = await store.consumeAll(checks, patienceMs);
      return [...(await Promise.all(single)), ...several].map(({ remaining }) => remaining);
    };
    let answers: number[] = [];
    const note = async () => (answers = await ask());
    expect(await driver.during(note)).toEqual(["load", "swapMany"]);
    expect(answers).toEqual([...Array(100).fill(9), 0, 0]);
    await databaseStore(driver).consume(limit, "key-7", 3, patienceMs);
    expect(await driver.during(note)).toEqual(["swapMany", "load", "swap"]);
    expect(answers).toEqual(Array.from({ length: 102 }, (_, i) => (i === 7 ? 5 : i < 100 ? 8 : 0)));
  });

  it("leave at most four calls in flight, so that later requests share the next one", async () => {
    const driver = new RemoteDriver();
    driver.turns = () => 1;
    const store = databaseStore(driver);
    const limit = yearly(10);
    const ask = async (): Promise<void> => {
      const decisions: (Decision | Promise<Decision>)[] = [];
      for (let i = 0; i < 20; i++) {
        decisions.push(store.consume(limit, `key-${i}`, 1, patienceMs));
        // The call leaves in this turn, and its answer comes in a later one.
        await new Promise(process.nextTick);
      }
      await Promise.all(decisions);
    };
    await ask();
    expect(await driver.during(ask)).toEqual(["swap", "swap", "swap", "swap", "swapMany"]);
  });

  it("are those of at most 128 keys at once, so that requests which expire before theirs cost the database nothing", async () => {
    const driver = new RemoteDriver();
    const single: DatabaseDriver = { load: (keys) => driver.load(keys), swap: (...change) => driver.swap(...change) };
    const store = databaseStore(single);
    const limit = yearly(10);
    const load = driver.load;
    driver.load = () => {
      driver.calls.push("load");
      return new Promise(() => undefined);
    };
    const asked = Array.from({ length: 2000 }, (_, i) => store.consume(limit, `key-${i}`, 1, 200));
    await sleep(0);
    expect(driver.calls).toEqual(Array.from({ length: 128 }, () => "load"));
    expect((await Promise.allSettled(asked)).every(({ status }) => status === "rejected")).toBe(true);
    driver.load = load;
    const again = Array.from({ length: 2000 }, (_, i) => store.consume(limit, `key-${i}`, 1, patienceMs));
    expect(await passed(again)).toBe(2000);
  });

  it("are one for a rejection, which writes nothing, and none for a rejection of a key that was seen a moment ago", async () => {
    const driver = new RemoteDriver();
    const limit = yearly(1);
    const [store, uncached] = [databaseStore(driver), databaseStore(driver, { denyCache: false })];
    await store.consume(limit, "a", 1, patienceMs);
    expect(await driver.during(() => uncached.consume(limit, "a", 1, patienceMs))).toEqual(["load"]);
    expect(await driver.during(() => uncached.consume(limit, "a", 1, patienceMs))).toEqual(["load"]);
    expect(await driver.during(() => expect(store.consume(limit, "a", 1)).toMatchObject({ allowed: false }))).toEqual([]);
  });

  it("are one more for each rejection of a log that counts rejected requests", async () => {
    const driver = new RemoteDriver();
    const store = databaseStore(driver);
    const limit = limitOf(slidingWindowLog({ limit: 1, window: "365d", countRejected: true }));
    await store.consume(limit, "a", 1, patienceMs);
    expect(await driver.during(() => store.consume(limit, "a", 1, patienceMs))).toEqual(["swap"]);
  });

  it("end a cached rejection in this process with its own reset and refund", async () => {
    const driver = new RemoteDriver();
    const store = databaseStore(driver);
    const limit = yearly(1);
    const decision = await store.consume(limit, "a", 1, patienceMs);
    expect(store.consume(limit, "a", 1)).toMatchObject({ allowed: false });
    expect(await store.settle(limit, "a", asCharge(decision), 0, patienceMs)).toBe(-1);
    expect(await store.consume(limit, "a", 1, patienceMs)).toMatchObject({ allowed: true });
    expect(store.consume(limit, "a", 1)).toMatchObject({ allowed: false });
    await store.reset(limit, "a", patienceMs);
    expect(await store.consume(limit, "a", 1, patienceMs)).toMatchObject({ allowed: true });
  });
});

describe("several processes at once", () => {
  it("together let pass exactly what the limit allows, whatever overtakes what", { timeout: 120_000 }, async () => {
    const requests = fc.array(fc.record({ process: fc.nat(3), key: fc.nat(2), all: fc.boolean(), turns: fc.nat(2) }), { maxLength: 60 });
    const burst = fc.integer({ min: 1, max: 20 });
    await fc.assert(
      fc.asyncProperty(requests, burst, fc.infiniteStream(fc.nat(3)), fc.boolean(), async (asked, limit, turns, decidesAgain) => {
        const driver = Object.assign(new RemoteDriver(), { decidesAgain });
        driver.turns = () => turns.next().value as number;
        const withoutMany: DatabaseDriver = { load: (keys) => driver.load(keys), swap: (...change) => driver.swap(...change) };
        const stores = [driver, withoutMany, withoutMany, driver].map((each, i) => databaseStore(each, { denyCache: i % 2 === 0 }));
        const limits = [limitOf(gcra({ limit: 1, window: "365d", burst: limit })), yearly(limit)] as const;
        const used = [0, 1, 2].map(() => [0, 0]);
        const keyOf = (number: number): string => `key-${number}`;
        const ask = async ({ process, key, all, turns }: (typeof asked)[0]): Promise<void> => {
          for (let left = turns; left > 0; left--) await sleep(0);
          const store = stores[process] as Store;
          const counts = used[key] as number[];
          if (!all) {
            if ((await store.consume(limits[0], keyOf(key), 1, patienceMs)).allowed) (counts[0] as number)++;
            return;
          }
          const checks = limits.map((each) => ({ limit: each, key: keyOf(key), cost: 1 }));
          const decisions = await store.consumeAll(checks, patienceMs);
          if (decisions.every(({ allowed }) => allowed)) for (const i of [0, 1]) (counts[i] as number)++;
        };
        await Promise.all(asked.map(ask));
        for (const [key, counts] of used.entries()) {
          const left = await Promise.all(limits.map((each) => (stores[1] as Store).peek(each, keyOf(key), patienceMs)));
          expect(left.map(({ used }) => used)).toEqual(counts);
          const wanted = asked.filter((each) => each.key === key).length;
          expect(counts[0]).toBe(Math.min(limit, wanted));
        }
      }),
      { ...runs(120), endOnFailure: true },
    );
  });

  it("charge a hundred keys of one request, or none of them", async () => {
    const driver = new RemoteDriver();
    driver.turns = () => 1;
    const stores = [databaseStore(driver), databaseStore(driver), databaseStore(driver)];
    const limit = yearly(7);
    const checks = Array.from({ length: 100 }, (_, i) => ({ limit, key: `key-${i}`, cost: 1 }));
    const answers = await Promise.all(stores.flatMap((store) => [1, 2, 3, 4].map(() => store.consumeAll(checks, patienceMs))));
    expect(answers.filter((decisions) => decisions.every(({ allowed }) => allowed))).toHaveLength(7);
    for (const { key } of checks) expect((await (stores[0] as Store).peek(limit, key, patienceMs)).remaining).toBe(0);
  });

  it("never let pass more than the limit while calls fail, and count each request that passed", { timeout: 120_000 }, async () => {
    const faults = fc.infiniteStream(fc.constantFrom("before" as const, "after" as const, undefined, undefined, undefined));
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 20 }), faults, fc.boolean(), async (most, fault, decidesAgain) => {
        const driver = Object.assign(new RemoteDriver(), { decidesAgain });
        driver.fault = () => fault.next().value as undefined;
        const stores = [databaseStore(driver), databaseStore(driver)];
        const limit = yearly(most);
        const keys = ["a", "b"];
        const allowed = new Map(keys.map((key) => [key, 0]));
        for (let round = 0; round < 20; round++) {
          const asked = stores.flatMap((store) =>
            keys.map(async (key) => ((await store.consume(limit, key, 1, patienceMs)).allowed ? [key] : [])),
          );
          for (const answer of await Promise.allSettled(asked)) {
            if (answer.status === "fulfilled") for (const key of answer.value) allowed.set(key, (allowed.get(key) as number) + 1);
            else expect(answer.reason).toMatchObject({ code: "FLOODGATE_STORE_FAULT" });
          }
        }
        driver.fault = () => undefined;
        for (const key of keys) {
          const { used } = await (stores[0] as Store).peek(limit, key, patienceMs);
          expect(allowed.get(key)).toBeLessThanOrEqual(used);
        }
      }),
      { ...runs(100), endOnFailure: true },
    );
  });
});

describe("the deadline of a decision", () => {
  it("fails it while the database is silent, and the next decision does not wait for the silent call", async () => {
    const driver = new RemoteDriver();
    const store = databaseStore(driver);
    const limit = yearly(10);
    await store.consume(limit, "a", 1, patienceMs);
    const { swap } = driver;
    driver.swap = () => new Promise(() => undefined);
    await expect(store.consume(limit, "a", 1, 20)).rejects.toMatchObject({ code: "FLOODGATE_STORE_TIMEOUT" });
    driver.swap = swap;
    expect(await store.consume(limit, "a", 1, patienceMs)).toMatchObject({ allowed: true, remaining: 8 });
  });

  it("fails it if others always write first, and says that nothing was charged", async () => {
    const driver = new MapDriver();
    const store = databaseStore(driver);
    const limit = yearly(1000);
    const { swap } = driver;
    driver.swap = async (changes, valid) => {
      const [{ key, was }] = changes as [Change];
      await swap.call(driver, [{ key, was, value: "1", lifeMs: 1000 }], valid);
      return swap.call(driver, changes, valid);
    };
    await expect(store.consume(limit, "a", 1, 40)).rejects.toMatchObject({ code: "FLOODGATE_QUEUE_TIMEOUT" });
    driver.swap = swap;
    expect(await store.peek(limit, "a", patienceMs)).toMatchObject({ used: 0 });
  });

  it("says that the database is silent if it answered others just after the decision was asked for, and nothing since", async () => {
    // On a busy machine, the others' answers would come late.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const driver = new MapDriver();
    const store = databaseStore(driver);
    const limit = yearly(10);
    const { load } = driver;
    driver.load = (keys) => (keys.some((key) => key.includes("silent")) ? new Promise(() => undefined) : load.call(driver, keys));
    const asked: Promise<unknown>[] = [];
    // The first waits for its row, the second for the first.
    for (const key of ["a", "c"]) {
      asked.push(Promise.resolve(store.consume(limit, "silent", 1, 100)).catch((error: unknown) => error));
      // Not in the same call.
      await vi.advanceTimersByTimeAsync(1);
      await store.consume(limit, key, 1, patienceMs);
    }
    await vi.advanceTimersByTimeAsync(100);
    for (const each of asked) expect(await each).toMatchObject({ code: "FLOODGATE_STORE_TIMEOUT" });
  });

  it("is told to the database, so that a change that arrives later writes nothing", async () => {
    const driver = new RemoteDriver();
    const store = databaseStore(driver);
    const limit = yearly(10);
    await store.consume(limit, "a", 1, patienceMs);
    let delayed: Promise<unknown> | undefined;
    const { swap } = driver;
    driver.swap = (changes, valid) => {
      delayed = sleep(100).then(() => swap.call(driver, changes, valid));
      return delayed as ReturnType<typeof swap>;
    };
    await expect(store.consume(limit, "a", 1, 30)).rejects.toMatchObject({ code: "FLOODGATE_STORE_TIMEOUT" });
    await delayed;
    driver.swap = swap;
    expect(await store.peek(limit, "a", patienceMs)).toMatchObject({ used: 1 });
  });
});

describe("the database's clock", () => {
  it("decides, whatever the clock of the app server says, also after it was set", async () => {
    const driver = new MapDriver();
    let nowMs = 1_000_000_000_000;
    driver.nowMs = () => nowMs;
    const store = databaseStore(driver, { denyCache: false });
    const limit = limitOf(fixedWindow({ limit: 2, window: "1h" }));
    const ask = () => store.consume(limit, "a", 1, patienceMs);
    expect(await passed([await ask(), await ask(), await ask()])).toBe(2);
    nowMs += 3_600_000;
    expect(await ask()).toMatchObject({ allowed: true, remaining: 1 });
    expect((await ask()).atMs).toBeGreaterThanOrEqual(nowMs - 10);
    // Back within the window before: a time before the state's own counts as the state's own.
    nowMs -= 1_800_000;
    expect(await ask()).toMatchObject({ allowed: false });
  });
});

it("each call runs in the async context of a request that waits, where tracers attach its span", async () => {
  const request = new AsyncLocalStorage<{ waits: boolean }>();
  const waits: unknown[] = [];
  const note = <T>(answer: T): T => {
    waits.push(request.getStore()?.waits);
    return answer;
  };
  class Traced extends RemoteDriver {
    override load(keys: readonly string[]) {
      return note(super.load(keys));
    }
    override swap(...args: Parameters<RemoteDriver["swap"]>) {
      return note(super.swap(...args));
    }
    override swapMany(swaps: readonly Swap[]) {
      return note(super.swapMany(swaps));
    }
  }
  const driver = new Traced();
  driver.turns = () => 1;
  const store = databaseStore(driver);
  const limit = yearly(1000);
  const client = async (_: unknown, i: number): Promise<void> => {
    for (let done = 0; done < 20; done++) {
      const context = { waits: true };
      await request.run(context, async () => {
        await store.consume(limit, `key-${(i + done) % 3}`, 1, patienceMs);
        expect(request.getStore()).toBe(context);
      });
      context.waits = false;
      await sleep(0);
    }
  };
  await Promise.all(Array.from({ length: 10 }, client));
  expect(waits.length).toBeGreaterThan(20);
  expect(new Set(waits)).toEqual(new Set([true]));
});

it("a store that the app no longer refers to leaves the memory, although its database stays", async () => {
  const driver = new MapDriver();
  await expectGarbage(async () => {
    const store = databaseStore(driver, { prefix: "brief" });
    await createLimiter({ name: "brief", policy: fixedWindow({ limit: 1, window: "1h" }), store, timeoutMs: patienceMs }).consume("k");
    return store.scope as object;
  });
  expect(databaseStore(driver).scope).toBe(databaseStore(driver).scope);
});
