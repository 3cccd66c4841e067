import type { Change, DatabaseDriver, Loaded, Row, Swapped, ValidTime } from "./driver.js";

/** A database of `Deno.openKv()`. */
export interface KvDatabase {
  list(selector: {
    prefix: KvKey;
  }): AsyncIterable<{ readonly key: readonly unknown[]; readonly value: unknown; readonly versionstamp: string }>;
  atomic(): KvAtomic;
}

/** What is used of a `Deno.AtomicOperation`. */
export interface KvAtomic {
  check(check: { key: KvKey; versionstamp: string | null }): KvAtomic;
  set(key: KvKey, value: unknown, options: { expireIn: number }): KvAtomic;
  commit(): PromiseLike<{ readonly ok: boolean; readonly versionstamp?: string }>;
}

export type KvKey = readonly (string | number)[];

/** A value has at most 64 KiB, with what Deno adds. */
const partLength = 65_000;
/** An operation has at most 100 checks and 800 KiB: half of the checks leave each row 16 KiB. */
const maxRows = 50;

/** Later than this, Deno KV knows no time. */
const longestLifeMs = 1e15;

/** What the first part of a row says: how many parts there are, and its text. */
type First = readonly [parts: number, text: string];

/**
 * A driver for Deno KV: `databaseStore(denoKv(await Deno.openKv()))`. A change is one atomic operation. Deno KV has no clock to ask, so the
 * clock of each process decides. Rows are below the key `["floodgate"]`.
 */
export function denoKv(kv: KvDatabase): DatabaseDriver {
  const firstOf = (key: string): KvKey => ["floodgate", key, 0];

  /** A row has several parts if it is long. One operation writes them all, so they have one version. Later writings may leave some behind. */
  async function read(key: string): Promise<Row | undefined> {
    const parts: string[] = [];
    let version: string | undefined;
    let count = 0;
    for await (const { key: at, value, versionstamp } of kv.list({ prefix: ["floodgate", key] })) {
      if (at[2] === 0) {
        version = versionstamp;
        [count, parts[0]] = value as First;
      } else if (versionstamp === version) parts.push(value as string);
    }
    if (version === undefined) return undefined;
    // Parts of a row that has ended may be deleted one by one.
    return { version, value: parts.length === count ? parts.join("") : "" };
  }

  async function load(keys: readonly string[]): Promise<Loaded> {
    const rows = await Promise.all(keys.map(read));
    return { nowMs: Date.now(), rows };
  }

  return {
    scope: kv,
    maxRows,
    load,
    async swap(changes: readonly Change[], { fromMs, untilMs }: ValidTime): Promise<Swapped> {
      const operation = kv.atomic();
      for (const { key, was, value, lifeMs } of changes) {
        operation.check({ key: firstOf(key), versionstamp: (was as string | undefined) ?? null });
        if (value === undefined) continue;
        const count = Math.ceil(value.length / partLength);
        const expireIn = Math.min(Math.max(0, lifeMs), longestLifeMs);
        for (let i = 0; i < count; i++) {
          const text = value.slice(i * partLength, (i + 1) * partLength);
          operation.set(["floodgate", key, i], i === 0 ? ([count, text] satisfies First) : text, { expireIn });
        }
      }
      const nowMs = Date.now();
      const version = nowMs < fromMs || nowMs > untilMs ? undefined : await commit(operation);
      if (version === undefined) return { ...(await load(changes.map(({ key }) => key))), done: false };
      const rows = changes.map(({ was = "", value }) => (value === undefined ? { version: was, value: "" } : { version, value }));
      return { done: true, nowMs, rows };
    },
  };
}

/** Returns the version of what was written; undefined if nothing was. */
async function commit(operation: KvAtomic): Promise<string | undefined> {
  try {
    return (await operation.commit()).versionstamp;
  } catch (error) {
    // Another process writes to the same file. SQLite has written nothing.
    if (error instanceof Error && error.message.includes("database is locked")) return undefined;
    throw error;
  }
}
