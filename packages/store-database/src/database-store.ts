import type { Decision, Store } from "@floodgate/core";
import {
  activeListener,
  type Blocked,
  type BlockKind,
  type Charge,
  type Check,
  type Clock,
  checkOptions,
  type Decided,
  decideAll,
  encodeKey,
  flag,
  type Inspection,
  inspectIn,
  invalidOption,
  type Limit,
  passesAll,
  WeakScopes,
  wholeMsClock,
  wrongOption,
} from "@floodgate/core/store";
import type { DatabaseDriver } from "./driver.js";
import type { Entry } from "./entry.js";
import { separateShards } from "./faults.js";
import { SwapQueue } from "./swap-queue.js";

export interface DatabaseStoreOptions {
  /** The prefix of every key. Default `"floodgate"`. Give each app its own if several share a database but not their limits. */
  prefix?: string;
  /** Returns milliseconds since the epoch. Default: the database's time, so that the clocks of app servers do not matter. */
  clock?: Clock;
  /**
   * Whether this process rejects a key without asking for up to a second after the database has shown that it must wait, while that is
   * certain. Default true. A reset, unblock or refund by another process is noticed after at most this second.
   */
  denyCache?: boolean;
}

/** Default timeout for direct calls. Limiters pass their own. */
const defaultTimeoutMs = 100;

/** How long a rejection is repeated without asking. */
const denyMs = 1000;

/** By database and prefix. Stores and limits refer to them. */
const scopes = new WeakScopes<object>();

/**
 * A store in a database, shared by all processes that use it. Each decision is one compare-and-swap.
 *
 *     const store = databaseStore(postgres(pool), { prefix: "my-app" });
 *     app.use(rateLimit({ limit: 100, window: "1m", store }));
 *
 * The database client stays yours: the store never closes or reconfigures it, and sends nothing before the first decision. Limits with the
 * same name and prefix share one count.
 * @throws FloodgateError if the driver or an option is invalid.
 */
export function databaseStore(driver: DatabaseDriver, options: DatabaseStoreOptions = {}): Store<"async"> {
  const where = "databaseStore";
  if (typeof driver?.load !== "function" || typeof driver.swap !== "function") {
    throw invalidOption(
      `${where}: a driver was expected, with \`load\` and \`swap\`. Write databaseStore(postgres(pool)). The drivers are entry points of the package: @floodgate/store-database/postgres, say.`,
    );
  }
  checkOptions(where, options, ["prefix", "clock", "denyCache"], 'databaseStore(driver, { prefix: "my-app" })');
  const { prefix = "floodgate", clock, denyCache = true } = options;
  if (typeof prefix !== "string" || !/^[\x21-\x7e]{1,64}$/.test(prefix)) {
    throw wrongOption(where, "prefix", "1 to 64 printable ASCII characters without spaces", prefix, 'prefix: "my-app"');
  }
  const denies = flag(where, "denyCache", denyCache);
  return new DatabaseStore(driver, prefix, clock === undefined ? undefined : wholeMsClock(where, clock), denies);
}

class DatabaseStore implements Store<"async"> {
  readonly mode = "async";
  readonly keepsDeadlines = true;
  readonly answersFromCache = true;
  readonly scope: object;
  readonly dataId: string;
  readonly shardOf: ((key: string) => string) | undefined;
  readonly #prefix: string;
  readonly #queue: SwapQueue;
  readonly #denyMs: number;

  constructor(driver: DatabaseDriver, prefix: string, clock: Clock | undefined, denyCache: boolean) {
    this.scope = scopes.getOrMake(driver.scope ?? driver, prefix, () => ({}));
    this.dataId = `database ${prefix}`;
    this.shardOf = driver.shardOf;
    this.#prefix = `${prefix}:`;
    this.#queue = new SwapQueue(driver, clock);
    this.#denyMs = denyCache ? denyMs : Number.NEGATIVE_INFINITY;
  }

  consume(limit: Limit, key: string, cost: number, timeoutMs: number = defaultTimeoutMs): Decided<Decision, "async"> {
    const keys = [this.#keyOf(limit.name, key)];
    const rejection = this.#knownRejection([{ limit, key: keys[0] as string, cost }]);
    if (rejection !== undefined) return rejection[0] as Decision;
    return this.#queue.ask(keys, ([entry], nowMs) => (entry as Entry).decide(limit, cost, nowMs, true), timeoutMs);
  }

  consumeAll(checks: readonly Check[], timeoutMs: number = defaultTimeoutMs): Decided<Decision[], "async"> {
    const shards = new Set(checks.map(({ key }) => this.shardOf?.(key)));
    if (shards.size > 1) return Promise.reject(separateShards(shards));
    const keyed = checks.map((check) => ({ ...check, key: this.#keyOf(check.limit.name, check.key) }));
    const keys = [...new Set(keyed.map(({ key }) => key))];
    const work = (entries: readonly Entry[], nowMs: number): Decision[] => {
      const byKey = new Map(keys.map((key, i) => [key, entries[i] as Entry]));
      return decideAll(keyed, nowMs, (limit, key, cost, atMs, commit) => (byKey.get(key) as Entry).decide(limit, cost, atMs, commit));
    };
    return this.#knownRejection(keyed) ?? this.#queue.ask(keys, work, timeoutMs);
  }

  peek(limit: Limit, key: string, timeoutMs: number = defaultTimeoutMs): Promise<Decision> {
    return this.#ask(limit.name, key, timeoutMs, (entry, nowMs) => entry.decide(limit, 1, nowMs, false));
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number, timeoutMs: number = defaultTimeoutMs): Promise<number> {
    const work = (entry: Entry, charge: Charge, nowMs: number, mark?: Entry): number => {
      mark?.mark(charge, nowMs);
      return entry.settle(limit, charge, cost, nowMs);
    };
    return this.#byReceipt(limit, key, charge, work, timeoutMs).then((units) => units ?? 0);
  }

  renew(limit: Limit, key: string, charge: Charge, timeoutMs: number = defaultTimeoutMs): Promise<Decision | undefined> {
    const work = (entry: Entry, charge: Charge, nowMs: number, mark?: Entry): Decision => {
      const made = entry.renew(limit, charge, nowMs);
      if (made.allowed) mark?.mark(charge, nowMs, made);
      return made;
    };
    return this.#byReceipt(limit, key, charge, work, timeoutMs);
  }

  /** Works on a charge. Undefined if its receipt was redeemed or has expired. */
  #byReceipt<T>(
    { name }: Limit,
    key: string,
    charge: Charge,
    work: (entry: Entry, charge: Charge, nowMs: number, mark?: Entry) => T,
    timeoutMs: number,
  ): Promise<T | undefined> {
    const { receipt } = charge;
    if (receipt === undefined) return this.#ask(name, key, timeoutMs, (entry, nowMs) => work(entry, charge, nowMs));
    const keys = [this.#keyOf(name, key), this.#keyOf(name, key, receipt.id)];
    const byMark = ([entry, mark]: readonly Entry[], nowMs: number): T | undefined => {
      const marked = (mark as Entry).marked(charge, nowMs);
      return marked && work(entry as Entry, marked, nowMs, mark);
    };
    return this.#queue.ask(keys, byMark, timeoutMs);
  }

  reset(limit: Limit, key: string, timeoutMs: number = defaultTimeoutMs): Promise<void> {
    return this.#ask(limit.name, key, timeoutMs, (entry, nowMs) => entry.reset(limit, nowMs));
  }

  block(name: string, key: string, forMs: number, kind: BlockKind, timeoutMs: number = defaultTimeoutMs): Promise<Blocked> {
    return this.#ask(name, key, timeoutMs, (entry, nowMs) => entry.block(nowMs, forMs, kind));
  }

  unblock(name: string, key: string, timeoutMs: number = defaultTimeoutMs): Promise<void> {
    return this.#ask(name, key, timeoutMs, (entry) => entry.unblock());
  }

  keyState(limit: Limit, key: string, timeoutMs: number = defaultTimeoutMs): Promise<Inspection> {
    return this.#ask(limit.name, key, timeoutMs, (entry, nowMs) => inspectIn(limit, entry.stateFor(limit).cells, 0, nowMs, entry.blocks));
  }

  #ask<T>(name: string, key: string, timeoutMs: number, work: (entry: Entry, nowMs: number) => T): Promise<T> {
    return this.#queue.ask([this.#keyOf(name, key)], ([entry], nowMs) => work(entry as Entry, nowMs), timeoutMs);
  }

  /** The key of a row. Long keys are hashed. */
  #keyOf(...parts: [name: string, key: string, receipt?: string]): string {
    const shard = this.shardOf?.(parts[1] as string);
    const shown = shard === undefined ? "" : `${encodeKey(asciiJson(shard).replaceAll(" ", "\\u0020"))} `;
    return shown + this.#prefix + encodeKey(asciiJson(parts));
  }

  /**
   * The decisions if the database is certain to reject: usage only grows, unless a key is reset or refunded. Held units may
   * come back at any moment, and a log that counts rejected requests must store each of them.
   */
  #knownRejection(checks: readonly Check[]): Decision[] | undefined {
    const known = this.#queue.recent(checks, this.#denyMs);
    if (known === undefined) return undefined;
    const { entries, nowMs, slackMs } = known;
    const decisions: Decision[] = [];
    for (const { limit, cost } of checks) {
      const { algorithm, policy } = limit;
      if (policy.holdMs !== undefined || algorithm.countsRejected?.(policy) === true) return undefined;
      const made = (entries[decisions.length] as Entry).decide(limit, cost, nowMs, false);
      // A rejection that ends before a question would arrive is not certain.
      if (!made.allowed && made.retryAfterMs <= slackMs) return undefined;
      decisions.push(made);
    }
    if (passesAll(checks, decisions)) return undefined;
    const listener = activeListener();
    for (const { allowed, name } of decisions) if (!allowed) listener?.({ type: "deny-cache-hit", name });
    return decisions;
  }
}

/** JSON in ASCII: databases refuse some of the other characters (NUL, or what their encoding lacks), which would fail a whole statement. */
function asciiJson(value: unknown): string {
  const json = JSON.stringify(value);
  return /[^ -~]/.test(json) ? json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`) : json;
}
