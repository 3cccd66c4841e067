import { checkOptions, functionOrNothing } from "@floodgate/core/store";
import type { WorkersOptions } from "./d1.js";
import type { Change, DatabaseDriver, Loaded, Row, Swapped, ValidTime } from "./driver.js";
import { sqliteMigration } from "./sqlite.js";
import { type SqliteRows, sqliteRows } from "./sqlite-rows.js";
import { checkClient, keysOf } from "./table.js";

/** The state of a Durable Object with SQLite. */
export interface ObjectState {
  readonly storage: {
    readonly sql: { exec(sql: string, ...values: (string | number | null)[]): { toArray(): unknown[] } };
    transactionSync<T>(work: () => T): T;
    getAlarm(): Promise<number | null>;
    setAlarm(atMs: number): Promise<void>;
    deleteAll(): Promise<void>;
  };
}

/** A binding of Durable Objects. */
export interface ObjectNamespace<Id = unknown> {
  idFromName(name: string): Id;
  get(id: Id): {
    fetch(url: string, init: { method: string; body: string }): PromiseLike<{ readonly status: number; json(): Promise<unknown> }>;
  };
}

export interface DurableObjectsOptions extends WorkersOptions {
  /**
   * Which keys share an object: those for which it returns the same text. Default: all keys are in one object. A request under several limits is
   * atomic within one object only: if its keys are in several, it fails with `FLOODGATE_DIFFERENT_STORES`.
   */
  shardOf?: (key: string) => string;
}

/** What is sent to an object: keys to load, or a change. */
type Question = { readonly keys: readonly string[] } | { readonly changes: readonly Change[]; readonly valid: ValidTime };

const sweepEveryMs = 60_000;
const sweptAtOnce = 500;
/** The last moment that a `Date` can hold. */
const lastMs = 8.64e15;

/**
 * The object that keeps counts for `durableObjects`, in its own SQLite. Export it from your Worker, and name it under `new_sqlite_classes`. It
 * makes its table, because nobody else can reach it, and deletes all that it has when the last row has ended.
 */
export class FloodgateObject {
  readonly #storage: ObjectState["storage"];
  #made: SqliteRows | undefined;

  constructor(state: ObjectState) {
    this.#storage = state.storage;
  }

  async fetch(request: { json(): Promise<unknown> }): Promise<Response> {
    const question = (await request.json()) as Question;
    if ("keys" in question) return Response.json(this.#rows.load(question.keys));
    // Everything in one turn: no other request comes between. What it wrote is on disk before the answer leaves.
    const swapped = this.#storage.transactionSync(() => this.#rows.swap(question.changes, question.valid));
    if (swapped.done && (await this.#storage.getAlarm()) === null) await this.#storage.setAlarm(swapped.nowMs + sweepEveryMs);
    return Response.json(swapped);
  }

  async alarm(): Promise<void> {
    const nowMs = Date.now();
    this.#rows.sweep(sweptAtOnce);
    const [first] = this.#storage.sql.exec("SELECT ends_ms AS ends FROM floodgate ORDER BY ends_ms LIMIT 1").toArray() as {
      ends: number;
    }[];
    if (first === undefined) {
      this.#made = undefined;
      await this.#storage.deleteAll();
    } else {
      const nextMs = first.ends < nowMs ? nowMs : Math.max(first.ends + 1, nowMs + sweepEveryMs);
      await this.#storage.setAlarm(Math.min(nextMs, lastMs));
    }
  }

  get #rows(): SqliteRows {
    if (this.#made !== undefined) return this.#made;
    const { sql } = this.#storage;
    sql.exec(sqliteMigration());
    const prepare = (text: string) => {
      const run = (...values: (string | number | null)[]) => sql.exec(text, ...values).toArray();
      return { all: run, run };
    };
    this.#made = sqliteRows({ prepare }, "floodgate");
    return this.#made;
  }
}

/**
 * A driver for Cloudflare Workers that keeps its rows in Durable Objects: `databaseStore(durableObjects(env.FLOODGATE))`. The Worker exports
 * `FloodgateObject`. The object's clock decides.
 * @throws FloodgateError if an option is invalid.
 */
export function durableObjects<Id>(namespace: ObjectNamespace<Id>, options: DurableObjectsOptions = {}): DatabaseDriver {
  const where = "durableObjects";
  checkClient(where, namespace, ["idFromName", "get"], "durableObjects(env.FLOODGATE)");
  checkOptions(where, options, ["shardOf", "waitUntil"], "durableObjects(env.FLOODGATE, { waitUntil })");
  const { shardOf, waitUntil } = options;
  functionOrNothing(where, "shardOf", shardOf, "(key) => key");
  functionOrNothing(where, "waitUntil", waitUntil, "waitUntil");

  async function ask([first = ""]: readonly string[], question: Question): Promise<Loaded & Swapped> {
    const name = shardOf === undefined ? "floodgate" : first.slice(0, first.indexOf(" "));
    // A stub belongs to the request that made it.
    const object = namespace.get(namespace.idFromName(name));
    const answer = await object.fetch("https://floodgate/", { method: "POST", body: JSON.stringify(question) });
    if (answer.status !== 200) throw new Error(`The Durable Object answered ${answer.status}.`);
    const swapped = (await answer.json()) as Loaded & Swapped & { rows: (Row | null)[] };
    return { ...swapped, rows: swapped.rows.map((row) => row ?? undefined) };
  }

  return {
    waitUntil,
    shardOf,
    // Stores that place keys differently share no data.
    scope: shardOf === undefined ? namespace : undefined,
    load: (keys): Promise<Loaded> => ask(keys, { keys }),
    swap: (changes, valid) => ask(keysOf(changes), { changes, valid }),
  };
}
