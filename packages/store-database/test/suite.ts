import { fixedWindow, type Store } from "@floodgate/core";
import { createLimit, type Limit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allRuns, runs } from "../../../test/runs.js";
import { type StoreGroup, storeConformance } from "../../conformance/src/store.js";
import { fault } from "../src/faults.js";
import { type DatabaseDriver, databaseStore, type Version } from "../src/index.js";
import { compareWithMemory } from "./compare-with-memory.js";
import { MapDriver } from "./map-driver.js";

let prefixes = 0;

/** What every driver shares with the one in memory, which `conformance.test.ts` judges by all groups. */
const inLongRuns: readonly StoreGroup[] = [
  ...(["vectors", "algorithms", "large numbers", "accounts", "plans"] as const),
  ...(["refunds", "settle", "keyState", "holds"] as const),
];

/** Runs the suite of stores on a driver: all of it in long runs, else the groups in which drivers can differ. */
export function suiteOf(name: string, driver: () => DatabaseDriver): void {
  const leaveOut = Object.fromEntries((allRuns ? [] : inLongRuns).map((group) => [group, "in long runs"]));
  storeConformance(
    { describe, it },
    {
      name,
      makeStore: (clock) => databaseStore(driver(), { clock, denyCache: false, prefix: `run-${prefixes++}` }),
      effort: allRuns ? 0.2 : 0.01,
      leaveOut,
    },
  );
  hostileKeysCase(name, driver);
  it.runIf(allRuns)(`${name} decides, settles, blocks and shows everything as a memory store does`, { timeout: 120_000 }, () =>
    compareWithMemory(driver, 60),
  );
}

/** Keys that databases refuse, shorten, compare without regard to case or accents, or cannot hold in their encoding. */
const hostileKeys: readonly string[] = [
  ...["\0", "a\0b", "\ud800", "\udfff x", "\u{1f600}", "\u{10ffff}", "\ufffe", "\u2028", "\r\n\t\x1b", "\x7f", "\x80"],
  ...["e\u0301", "\u00e9", "e", "E", "\u65e5\u672c", "\u0130", "\u00df", "ss", "", " ", "a", "a ", " a", "A"],
  ...["' OR 1 = 1; --", '"', "`", "\\", "\\'", "\\0", "\\u0000", "%", "_", "$1", "?", ":key", "{}", "[null]", "null"],
  ...["\u65e5", "\u{1f600}", "\0", "'", "x"].map((text) => text.repeat(5000)),
];

/** Asks for hostile keys at one moment. */
export function hostileKeysCase(name: string, driver: () => DatabaseDriver): void {
  it(`${name} decides keys of any text, and none makes those of the same moment fail`, { timeout: 120_000 }, async () => {
    const store = databaseStore(driver(), { denyCache: false, prefix: `run-${prefixes++}` });
    const limit = createLimit("hostile", fixedWindow({ limit: 1, window: "365d" }));
    const ask = () => Promise.all(hostileKeys.map(async (key) => (await store.consume(limit, key, 1, 60_000)).allowed));
    expect(await ask()).toEqual(hostileKeys.map(() => true));
    expect(await ask()).toEqual(hostileKeys.map(() => false));
  });
}

/** Decides by clients of one database that answer in other forms. `refused` are those that no driver can read, or that keep no change. */
export function clientOptionsCase(
  name: string,
  drivers: () => Promise<{ readonly decides: readonly DatabaseDriver[]; readonly refused: readonly DatabaseDriver[] }>,
): void {
  it(`${name} decides whatever the client is and its options are, or fails and says why`, { timeout: 120_000 }, async () => {
    const { decides, refused } = await drivers();
    const prefix = `run-${prefixes++}`;
    const yearMs = 365 * 86_400_000;
    // Twice: the second time, each of them knows only an older row.
    const asked = 2 * decides.length;
    const limits = ["one", "two"].map((name) => createLimit(name, fixedWindow({ limit: asked, window: yearMs })));
    const limit = limits[0] as Limit;
    const checks = limits.map((limit) => ({ limit, key: "several", cost: 1 }));
    const stores = decides.map((driver) => databaseStore(driver, { prefix, denyCache: false }));
    for (const [i, store] of [...stores, ...stores].entries()) {
      const remaining = asked - i - 1;
      expect(await store.consume(limit, "one", 1, 60_000)).toMatchObject({ allowed: true, remaining });
      expect(await store.consumeAll(checks, 60_000)).toMatchObject([{ remaining }, { remaining }]);
    }
    const together = await Promise.all(stores.map((store) => store.consume(limit, "new", 1, 60_000)));
    expect(new Set(together.map(({ remaining }) => remaining)).size).toBe(stores.length);
    const { nowMs } = await (decides[0] as DatabaseDriver).load(["none"]);
    for (const store of stores) {
      const { allowed, retryAfterMs, atMs } = await store.consume(limit, "one", 1, 60_000);
      expect(allowed).toBe(false);
      expect(retryAfterMs).toBeLessThanOrEqual(yearMs);
      expect(Math.abs(atMs - nowMs)).toBeLessThan(60_000);
    }
    for (const driver of refused) {
      const failing = databaseStore(driver, { prefix }).consume(limit, "one", 1, 60_000);
      const message = expect.stringMatching(/did not answer rows as objects|have `autocommit` off/);
      await expect(failing).rejects.toMatchObject({ code: "FLOODGATE_STORE_FAULT", message });
    }
  });
}

/** Lets stores that share nothing but the database ask for several limits at one moment. @param drivers each with a client of its own. */
export function severalLimitsRaceCase(name: string, drivers: () => readonly DatabaseDriver[]): void {
  it(`${name} allows exactly the smallest of several limits, of which some are new, to several processes`, {
    timeout: 120_000,
  }, async () => {
    const prefix = `run-${prefixes++}`;
    const limits = [40, 1000].map((limit) => createLimit(`most-${limit}`, fixedWindow({ limit, window: "365d" })));
    const [all, own] = limits as [Limit, Limit];
    const stores = drivers().map((driver) => databaseStore(driver, { prefix, denyCache: false }));
    const asked = Array.from({ length: 120 }, (_, i) => {
      const keys = [`user-${i % 7}`, `address-${i % 11}`];
      const checks = [{ limit: all, key: "all", cost: 1 }, ...keys.map((key) => ({ limit: own, key, cost: 1 }))];
      return (stores[i % stores.length] as Store<"async">).consumeAll(checks, 100_000);
    });
    const passed = (await Promise.all(asked)).filter((decisions) => decisions.every(({ allowed }) => allowed));
    expect(passed).toHaveLength(40);
    const keys = Array.from({ length: 11 }, (_, i) => [`user-${i}`, `address-${i}`]).flat();
    const peeked = await Promise.all(keys.map((key) => stores[0]?.peek(own, key, 60_000)));
    expect(peeked.reduce((sum, decision) => sum + 1000 - (decision?.remaining ?? 0), 0)).toBe(80);
  });
}

/** Writes new rows that another transaction has inserted, and undoes once their time is over. @param hold inserts rows, and returns what undoes it. */
export function undoneInsertCase(
  name: string,
  driver: () => DatabaseDriver,
  hold: (keys: readonly string[]) => Promise<() => Promise<unknown>>,
): void {
  it(`${name} inserts nothing after its time, if another transaction had inserted the row and has undone it`, async () => {
    const keys = ["one", "several", "many"].map((key) => `${key}-${Math.random()}`);
    const [one, several, many] = keys as [string, string, string];
    const writing = driver();
    const change = (key: string, was?: Version) => ({ key, was, value: "1", lifeMs: 60_000 });
    const { rows } = await writing.swap([change(`${several}-known`)], { fromMs: 0, untilMs: Number.MAX_SAFE_INTEGER });
    const undo = await hold(keys);
    const untilMs = (await writing.load([one])).nowMs + 200;
    const valid = { fromMs: 0, untilMs };
    const swaps = [
      writing.swap([change(one)], valid),
      writing.swap([change(several), change(`${several}-known`, rows[0]?.version)], valid),
      writing.swapMany?.([
        { changes: [change(many)], valid },
        { changes: [change(`${many}-other`)], valid: { ...valid, untilMs: untilMs + 3_600_000 } },
      ]),
    ];
    await expect.poll(async () => (await writing.load([one])).nowMs, { interval: 20 }).toBeGreaterThan(untilMs);
    await undo();
    expect((await Promise.all(swaps)).flat().map((swapped) => swapped?.done ?? "none")).toEqual(
      writing.swapMany === undefined ? [false, false, "none"] : [false, false, false, true],
    );
    const loaded = await writing.load([...keys, `${several}-known`]);
    expect(loaded.rows.map((row) => row?.version)).toEqual([undefined, undefined, undefined, rows[0]?.version]);
  });
}

/**
 * Decides as a user that has exactly the rights of the README, lacks one of them, or may not write.
 * @param driverWith the driver of a user with some rights on the table; or without rights on its schema or database; or whose connections only read.
 */
export function permissionsCase(
  name: string,
  driverWith: (rights: readonly string[] | "no schema" | "read-only") => Promise<DatabaseDriver>,
): void {
  const rights = ["SELECT", "INSERT", "UPDATE", "DELETE"];
  const limits = ["one", "two"].map((limit) => createLimit(limit, fixedWindow({ limit: 9, window: "365d" })));
  const [one] = limits as [Limit];

  /** Messages of what failed. */
  async function messagesOf(driver: DatabaseDriver): Promise<string[]> {
    const store = databaseStore(driver, { prefix: `run-${prefixes++}`, denyCache: false });
    const messages: string[] = [];
    const note = async (act: unknown): Promise<void> => {
      await Promise.resolve(act).catch((error: Error) => messages.push(error.message));
    };
    await note(store.consume(one, "key", 1, 60_000));
    await note(store.consume(one, "key", 1, 60_000));
    await note(
      store.consumeAll(
        limits.map((limit) => ({ limit, key: "several", cost: 1 })),
        60_000,
      ),
    );
    await note(store.block("one", "key", 60_000, "block", 60_000));
    await note(store.reset(one, "key", 60_000));
    await note(Promise.resolve(driver.sweep?.(10)).catch((error: unknown) => Promise.reject(fault(error))));
    return messages;
  }

  it(`${name} needs the rights that the README lists, and its errors say what to allow`, async () => {
    expect(await messagesOf(await driverWith(rights))).toEqual([]);
    const denied = /denied .*\. Allow it: GRANT SELECT, INSERT, UPDATE, DELETE on the table, and in Postgres USAGE on its schema\.$/;
    const readOnly = /read[- ]only.*\. Give the store connections that may write: to the primary/i;
    for (const without of [...rights, "no schema", "read-only"] as const) {
      const isRight = without !== "no schema" && without !== "read-only";
      const messages = await messagesOf(await driverWith(isRight ? rights.filter((right) => right !== without) : without));
      expect(messages).not.toEqual([]);
      for (const message of messages) expect(message).toMatch(without === "read-only" ? readOnly : denied);
    }
  });
}

const change = fc.record({
  key: fc.constantFrom("a", "b", "c", "d", "e", "f"),
  /** Which version it names: that of the row, none, or another. */
  was: fc.constantFrom("row", "row", "row", "none", "other"),
  value: fc.option(fc.constantFrom("", "1", '2{"\\\\}'), { nil: undefined, freq: 4 }),
});
const swaps = fc.uniqueArray(change, { selector: ({ key }) => key, minLength: 1 }).chain((changes) =>
  fc.record({
    changes: fc.constant(changes),
    /** The number of the swap that each change belongs to. */
    parts: fc.array(fc.nat(3), { minLength: changes.length, maxLength: changes.length }),
    late: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }).map((all) => all.map((each, i) => each && i === 0)),
  }),
);

/** Calls `swapMany` with right and wrong versions, in time and too late. It must do and answer what `swap` of each does in memory. */
export function swapManyCase(name: string, driver: () => DatabaseDriver): void {
  it(`${name} does many swaps of one call as if each came alone`, { timeout: 120_000 }, () =>
    fc.assert(
      fc.asyncProperty(fc.array(swaps, { minLength: 1, maxLength: 6 }), async (calls) => {
        const [theirs, ours] = [driver(), new MapDriver()];
        const prefix = `many-${Math.random()}-`;
        const versions = new Map<string, { theirs: Version; ours: Version }>();
        for (const { changes, parts, late } of calls) {
          const sorted = changes.map((each, i) => ({ ...each, part: parts[i] as number })).sort((a, b) => (a.key < b.key ? -1 : 1));
          const callOf = (side: "theirs" | "ours") =>
            [0, 1, 2, 3].flatMap((part) => {
              const own = sorted.filter((each) => each.part === part);
              const valid = { fromMs: 0, untilMs: late[part] ? 1 : Number.MAX_SAFE_INTEGER };
              const given = own.map(({ key, was, value }) => {
                const version = was === "row" ? versions.get(key)?.[side] : was === "none" ? undefined : side === "ours" ? -1 : "1";
                return { key: prefix + key, was: version, value: version === undefined ? (value ?? "") : value, lifeMs: 60_000 };
              });
              return own.length > 0 ? [{ changes: given, valid }] : [];
            });
          const [there, here] = [await theirs.swapMany?.(callOf("theirs")), await ours.swapMany(callOf("ours"))];
          expect(there?.map(({ done }) => done)).toEqual(here.map(({ done }) => done));
          const keys = sorted.map(({ key }) => key);
          const [rows, expected] = [await theirs.load(keys.map((key) => prefix + key)), await ours.load(keys.map((key) => prefix + key))];
          expect(rows.rows.map((row) => row?.value)).toEqual(expected.rows.map((row) => row?.value));
          const answered = new Map(callOf("theirs").flatMap((each, i) => each.changes.map(({ key }, at) => [key, there?.[i]?.rows[at]])));
          for (const [i, key] of keys.entries()) {
            const [row, mine] = [rows.rows[i], expected.rows[i]];
            expect(answered.get(prefix + key)?.version).toBe(row?.version);
            if (row !== undefined && mine !== undefined) versions.set(key, { theirs: row.version, ours: mine.version });
          }
        }
      }),
      runs(120),
    ),
  );
}
