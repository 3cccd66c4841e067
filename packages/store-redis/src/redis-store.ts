import type { Decision, Store } from "@floodgate/core";
import {
  activeListener,
  type Blocked,
  type BlockKind,
  type Charge,
  type Check,
  type Clock,
  checkOptions,
  copyWith,
  type Decided,
  type Inspection,
  type Limit,
  passesAll,
  unblockedMs,
  wholeNumber,
  wrongOption,
} from "@floodgate/core/store";
import type { AnyRedis } from "./clients/index.js";
import type { CommandQueues } from "./command-queues.js";
import { consumeAll } from "./consume-all.js";
import { blockSuffix, hashTag, heldKey } from "./keys.js";
import { defaultLifeMs, longestLifeMs } from "./lease/lease-table.js";
import type { Leases } from "./lease/leases.js";
import type { KeyedCheck, KnownLimits } from "./limits.js";
import { type PartOptions, Scope } from "./scope.js";
import { Block, Consume, DeleteState, Inspect, LiftBlock, Peek, Renew, Settle } from "./steps.js";

export interface RedisStoreOptions {
  /** The prefix of every key. Default `"floodgate"`. Give each app its own if several share a Redis but not their limits. */
  prefix?: string;
  /** Returns milliseconds since the epoch. Default: the Redis server's time, so that the clocks of app servers do not matter. */
  clock?: Clock;
  /**
   * Whether this process rejects a key without a round trip after Redis has rejected it, while that is certain. Default true.
   * `maxKeys`: the most cached keys, each counted once for each limit that rejects it (default 100,000, of about 500 bytes each). `maxAgeMs`: after at most this time a reset, unblock or refund
   * by another process is noticed (default 1000). A rejection is used for so long, and for up to a minute while no process announces such a change.
   */
  denyCache?: boolean | { maxKeys?: number; maxAgeMs?: number };
  /**
   * Whether this process takes units of busy keys ahead, in one step, and spends them without asking Redis. Default: only for limits with
   * `lease: true`. `lifeMs`: how long it may keep them, from 10 to 10,000 (default 100). docs/redis.md says what this does to a limit.
   */
  lease?: boolean | { lifeMs?: number };
}

/** A store in Redis. */
export interface RedisStore extends Store<"async"> {
  /**
   * Gives back the units that this process holds ahead of requests (see `lease`), and waits for it. Call it before the process ends, after
   * its server has stopped: `await store.releaseLeases()`. Requests may follow.
   */
  releaseLeases(): Promise<void>;
}

/**
 * A store in Redis or Valkey, shared by all processes that use it. Each decision is one atomic step in Redis.
 *
 *     const store = redisStore(new Redis("redis://127.0.0.1:6379"), { prefix: "my-app" });
 *     app.use(rateLimit({ limit: 100, window: "1m", store }));
 *
 * The client stays yours: the store never closes or reconfigures it, and sends nothing before the first decision. Limits with the same
 * name and prefix share one count.
 * @param client of ioredis (`new Redis()`, `new Cluster([...])`) or node-redis (`createClient()`, `createCluster()`, `createSentinel()`).
 * @throws FloodgateError if the client or an option is invalid.
 */
export function redisStore(client: AnyRedis, options: RedisStoreOptions = {}): RedisStore {
  const where = "redisStore";
  checkOptions(where, options, ["prefix", "clock", "denyCache", "lease"], 'redisStore(redis, { prefix: "floodgate" })');
  const denyCache = checkDenyCache(where, options.denyCache ?? true);
  const leaseMs = checkLease(where, options.lease);
  const scope = Scope.of(where, client, checkPrefix(where, options.prefix ?? "floodgate"));
  return new SharedStore(scope, { clock: options.clock, denyCache, leaseMs });
}

/** Default timeout for direct calls. Limiters pass their own. */
const defaultTimeoutMs = 100;

class SharedStore implements RedisStore {
  readonly mode = "async";
  readonly keepsDeadlines = true;
  readonly answersFromCache = true;
  readonly scope: Scope;
  readonly dataId: string;
  /** On a Cluster, the server of a key. */
  readonly shardOf: ((key: string) => string) | undefined;
  readonly #prefix: string;
  readonly #queues: CommandQueues;
  readonly #limits: KnownLimits;
  readonly #leases: Leases;

  constructor(scope: Scope, options: PartOptions) {
    this.scope = scope;
    const { client, prefix } = scope;
    const { database, keyPrefix } = client;
    this.dataId = `redis${database === 0 ? "" : ` database ${database}`} ${keyPrefix}${prefix}`;
    this.#prefix = `${prefix}:`;
    const { queues, limits, leases } = scope.parts(options);
    this.#queues = queues;
    this.#limits = limits;
    this.#leases = leases;
    if (client.isCluster) this.shardOf = (key) => queues.serverOf(this.#prefix + hashTag(key));
  }

  consume(limit: Limit, key: string, cost: number, timeoutMs: number = defaultTimeoutMs): Decided<Decision, "async"> {
    const known = this.#limits.get(limit);
    const leased = known.lease && this.#leases.spend(known.lease, key, cost, timeoutMs);
    if (leased !== undefined) return leased;
    const cached = known.denied?.look(known, key, cost);
    if (cached?.allowed === false) {
      activeListener()?.({ type: "deny-cache-hit", name: limit.name });
      return cached;
    }
    const redisKey = this.#redisKey(key, known.suffix);
    if (known.lease === undefined) return this.#queues.ask(new Consume(known, key, redisKey, cost, timeoutMs));
    const ask = (leftMs: number): Promise<Decision> => this.#queues.ask(new Consume(known, key, redisKey, cost, leftMs));
    const decided = this.#askAgainAfterRelease(ask, (decision) => !decision.allowed && this.scope.release(known.suffix, key), timeoutMs);
    this.#leases.fetch(known.lease, key, timeoutMs);
    return decided;
  }

  consumeAll(checks: readonly Check[], timeoutMs: number = defaultTimeoutMs): Decided<Decision[], "async"> {
    const keyed = checks.map(({ limit, key, cost, shadow = false, dryRun = false }): KeyedCheck => {
      const known = this.#limits.get(limit);
      return { known, key, redisKey: this.#redisKey(key, known.suffix), cost, shadow, dryRun };
    });
    const leases = keyed.some(({ known }) => known.lease !== undefined);
    const leased = leases ? this.#leases.spendAll(keyed, timeoutMs) : undefined;
    if (leased !== undefined) return leased;
    const rejected = knownRejection(keyed);
    if (rejected !== undefined) {
      tellRejected(checks, rejected);
      return rejected;
    }
    const ask = (leftMs: number): Promise<Decision[]> => consumeAll(this.#queues, keyed, leftMs);
    if (!leases) return ask(timeoutMs);
    this.#leases.fetchAll(keyed, timeoutMs);
    return this.#askAgainAfterRelease(ask, (decisions) => !passesAll(checks, decisions) && this.#release(keyed, decisions), timeoutMs);
  }

  /**
   * Asks Redis, and once more after a rejection if this process held units of a key that rejected: the request may lack just these. They are
   * given back before the second question.
   */
  #askAgainAfterRelease<T>(ask: (timeoutMs: number) => Promise<T>, isReleased: (answer: T) => boolean, timeoutMs: number): Promise<T> {
    const askedMs = unblockedMs();
    const leftMs = (): number => Math.max(1, timeoutMs + askedMs - unblockedMs());
    return ask(timeoutMs).then((answer) => (isReleased(answer) ? ask(leftMs()).catch(() => answer) : answer));
  }

  #release(checks: readonly KeyedCheck[], decisions: readonly Decision[]): boolean {
    const rejected = checks.filter((_, i) => decisions[i]?.allowed === false);
    return rejected.map(({ known, key }) => this.scope.release(known.suffix, key)).includes(true);
  }

  peek(limit: Limit, key: string, timeoutMs: number = defaultTimeoutMs): Decided<Decision, "async"> {
    const known = this.#limits.get(limit);
    const leased = known.lease && this.#leases.look(known.lease, key);
    if (leased !== undefined) return leased;
    return this.#queues.ask(new Peek(known, this.#redisKey(key, known.suffix), timeoutMs));
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number, timeoutMs: number = defaultTimeoutMs): Promise<number> {
    const known = this.#limits.get(limit);
    const done = this.#queues.ask(new Settle(known, this.#redisKey(key, known.suffix), charge, cost, timeoutMs));
    return this.scope.forgetDenied(known.suffix, key, done);
  }

  renew(limit: Limit, key: string, charge: Charge, timeoutMs: number = defaultTimeoutMs): Promise<Decision | undefined> {
    const known = this.#limits.get(limit);
    return this.#queues.ask(new Renew(known, this.#redisKey(key, known.suffix), charge, timeoutMs));
  }

  reset(limit: Limit, key: string, timeoutMs: number = defaultTimeoutMs): Promise<void> {
    const { policy, suffix } = this.#limits.get(limit);
    const redisKey = this.#redisKey(key, suffix);
    const others = policy.holds.length > 0 ? [heldKey(redisKey)] : [];
    // It lifts a ban too, which holds for all limits of the name.
    return this.scope.forgetName(limit.name, key, () => this.#queues.ask(new DeleteState(redisKey, others, timeoutMs)));
  }

  block(name: string, key: string, forMs: number, kind: BlockKind, timeoutMs: number = defaultTimeoutMs): Promise<Blocked> {
    return this.scope.forgetName(name, key, () =>
      this.#queues.ask(new Block(this.#redisKey(key, blockSuffix(name)), forMs, kind, timeoutMs)),
    );
  }

  unblock(name: string, key: string, timeoutMs: number = defaultTimeoutMs): Promise<void> {
    return this.scope.forgetName(name, key, () => this.#queues.ask(new LiftBlock(this.#redisKey(key, blockSuffix(name)), timeoutMs)));
  }

  keyState(limit: Limit, key: string, timeoutMs: number = defaultTimeoutMs): Promise<Inspection> {
    const known = this.#limits.get(limit);
    return this.#queues.ask(new Inspect(known, this.#redisKey(key, known.suffix), timeoutMs));
  }

  releaseLeases(): Promise<void> {
    return this.#leases.releaseLeases();
  }

  #redisKey(key: string, suffix: string): string {
    return this.#prefix + hashTag(key) + suffix;
  }
}

/**
 * The decisions if a cached rejection is certain, and no uncertain one may last longer; the other limits show their last known numbers.
 * Logs with `countRejected` are never cached, so a request with such a limit always goes to Redis: the log must record its rejection.
 */
function knownRejection(checks: readonly KeyedCheck[]): Decision[] | undefined {
  const decisions: Decision[] = [];
  let certainMs = -1;
  let uncertainMs = 0;
  for (const { known, key, cost, shadow, dryRun } of checks) {
    // A dry-run limit must be certain: its decision says whether the key is banned, for example.
    const decision = known.denied?.look(known, key, cost, dryRun);
    if (decision === undefined) return undefined;
    const { allowed, retryAfterMs } = decision;
    decisions.push(allowed && retryAfterMs > 0 ? copyWith(decision, { retryAfterMs: 0 }) : decision);
    if (shadow) continue;
    if (allowed) uncertainMs = Math.max(uncertainMs, retryAfterMs);
    else certainMs = Math.max(certainMs, retryAfterMs);
  }
  return certainMs < uncertainMs ? undefined : decisions;
}

/** A hit for each limit that rejected. */
function tellRejected(checks: readonly Check[], decisions: readonly Decision[]): void {
  checks.forEach(({ limit }, i) => {
    if (decisions[i]?.allowed === false) activeListener()?.({ type: "deny-cache-hit", name: limit.name });
  });
}

function checkPrefix(where: string, prefix: unknown): string {
  if (typeof prefix === "string" && /^[^{}\ud800-\udfff]{1,200}$/u.test(prefix)) return prefix;
  const must = "1 to 200 characters without braces (those say which keys share a Cluster slot)";
  throw wrongOption(where, "prefix", must, prefix, 'prefix: "my-app"');
}

function checkLease(where: string, option: unknown = false): number | undefined {
  if (typeof option === "boolean") return option ? defaultLifeMs : undefined;
  checkOptions(`${where}: lease`, option, ["lifeMs"], "lease: { lifeMs: 100 }");
  const lifeMs = wholeNumber(where, "lease.lifeMs", (option as { lifeMs?: number }).lifeMs ?? defaultLifeMs, 10, defaultLifeMs);
  if (lifeMs <= longestLifeMs) return lifeMs;
  throw wrongOption(where, "lease.lifeMs", `at most ${longestLifeMs}`, lifeMs, `lease: { lifeMs: ${defaultLifeMs} }`);
}

function checkDenyCache(where: string, option: unknown): PartOptions["denyCache"] {
  if (option === false) return undefined;
  const { maxKeys = 100_000, maxAgeMs = 1000 } = option === true ? {} : (option as { maxKeys?: number; maxAgeMs?: number });
  if (option !== true) checkOptions(`${where}: denyCache`, option, ["maxKeys", "maxAgeMs"], "denyCache: { maxKeys: 100_000 }");
  return {
    maxKeys: wholeNumber(where, "denyCache.maxKeys", maxKeys, 1, 100_000),
    maxAgeMs: wholeNumber(where, "denyCache.maxAgeMs", maxAgeMs, 1, 1000),
  };
}
