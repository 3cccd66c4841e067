import type { BlockKind, Charge, StateView } from "../algorithms/algorithm.js";
import { invalidOption, shown } from "../support/errors.js";
import { importOf } from "../support/foreign-options.js";
import type { Check, Decision, Limit } from "./decision.js";

/** Whether a store returns values or promises. Its limiters do the same. */
export type Mode = "sync" | "async";

/** What a limiter returns: a plain value with a synchronous store, a promise with an asynchronous one. */
export type Answer<T, M extends Mode> = M extends "sync" ? T : Promise<T>;

/** What a store decides: a plain value or a promise. An asynchronous store returns a plain value for what it knows without asking. */
export type Decided<T, M extends Mode> = M extends "sync" ? T : T | Promise<T>;

/** What `Store.block` did. */
export interface Blocked {
  /** How much longer the key is rejected, in milliseconds. */
  readonly leftMs: number;
  /** False if a ban was already in force. It stays as it is. */
  readonly begun: boolean;
}

/** When a block or a ban ends, in milliseconds since the epoch of the store's clock. */
export interface Until {
  readonly untilMs: number;
}

/** What a store knows of a limit and key at one moment. */
export interface Inspection {
  /** The store's time, in milliseconds since the epoch. */
  readonly atMs: number;
  /** The decision that a request of cost 1 would get, as from `peek`. */
  readonly decision: Decision;
  /** The state of the key as this limit sees it, block or not. */
  readonly state: StateView;
  /** The block of the key in force, if any: see `limiter.block`. */
  readonly block: Until | undefined;
  /** The ban of the key in force, if any. */
  readonly ban: Until | undefined;
}

/**
 * Holds state, and makes each decision in one atomic step.
 *
 * A state is identified by the limit's name, its policy's `stateKind` and a key. Limits that share all three share a count. A policy with
 * other numbers keeps the state, clamped to its limit. An expired state is the same as no state. `limit.algorithm` decides; the store keeps
 * the algorithm's cells, serialises access to them, and provides the time. A rejection is a result: only faults throw.
 *
 * `timeoutMs` is how long the caller waits. An asynchronous store should charge nothing after that.
 */
export interface Store<M extends Mode = Mode> {
  /** Whether it returns values or promises. */
  readonly mode: M;

  /**
   * Identity shared by stores over the same data: the same object in each of them. They then count as one store, with one set of names
   * and one circuit breaker. Default: the store itself.
   */
  readonly scope?: object;

  /**
   * Identity shared by processes over the same data: a string that is the same in each process and unique to the data, such as a key
   * prefix. Receipts are bound to it. Default: no other process shares the data.
   */
  readonly dataId?: string | undefined;

  /** Whether each promise settles within its `timeoutMs`. If not, the caller adds a timer. */
  readonly keepsDeadlines?: boolean;

  /**
   * Whether an answer without a promise was made in this process, from a cache or from units that were charged ahead. The circuit breaker does
   * not count it, because the server was not asked. Default false.
   */
  readonly answersFromCache?: boolean;

  /** How many keys it holds now. Undefined if it does not know. */
  readonly size?: number;

  /**
   * The part that holds a key, if parts fail separately: the server of a Cluster. Each part gets a circuit breaker of its own. It is called
   * for each key of a decision, and may answer something else later. Mark errors with `failedIn`. Default: one part.
   */
  readonly shardOf?: ((key: string) => string) | undefined;

  /** Decides one request, and charges it if it is allowed. */
  consume(limit: Limit, key: string, cost: number, timeoutMs?: number): Decided<Decision, M>;

  /**
   * Decides a request under several limits in one atomic step. If all checks except shadow ones allow, every check that allows is charged,
   * except `dryRun` ones. Else none is charged. Returns a decision for each check, in order, which says whether that limit alone would allow.
   * No two checks share both limit and key.
   */
  consumeAll(checks: readonly Check[], timeoutMs?: number): Decided<Decision[], M>;

  /** The decision that a request of cost 1 would get. Changes nothing. */
  peek(limit: Limit, key: string, timeoutMs?: number): Decided<Decision, M>;

  /**
   * Changes a charge to the real `cost`, a whole number of at least 0. A lower cost refunds the units that still count, if the key still
   * has the state that was charged (`charge.state`). A higher cost charges more, even into debt.
   * If nothing was reserved (`charge.cost` 0), the cost is charged now, even into debt and to a blocked key, and begins a state if there is
   * none. The limiter settles each decision once. A charge with a receipt may arrive again from another process: the store deduplicates it.
   * @returns the additional units, or a negative number of refunded units.
   */
  settle(limit: Limit, key: string, charge: Charge, cost: number, timeoutMs?: number): Answer<number, M>;

  /**
   * Renews the slots of a charge under `concurrency`, in one atomic step: see `renewIn`. The decision has the new charge; `allowed` is false
   * if the slots had come back and there is no room for them, or the receipt has expired. By a receipt, the store notes the new charge, and
   * finds it by that receipt from then on: so a renewal may be repeated. It is undefined if the receipt was redeemed, or has expired and its
   * slots are not renewed. Without this method the store hosts no `concurrency`.
   */
  renew?(limit: Limit, key: string, charge: Charge, timeoutMs?: number): Decided<Decision | undefined, M>;

  /**
   * Turns a key away under all limits of this name for `forMs` milliseconds: `consume`, `consumeAll` and `peek` reject it (see
   * `blockedDecision`) and charge nothing. A block replaces an earlier block. A ban that is in force stays as it is. A key may have both.
   */
  block(name: string, key: string, forMs: number, kind: BlockKind, timeoutMs?: number): Answer<Blocked, M>;

  /** Lifts the block and the ban of a name and key. */
  unblock(name: string, key: string, timeoutMs?: number): Answer<void, M>;

  /** Deletes the state of this limit and key, and lifts the ban of its name and key. A block stays. */
  reset(limit: Limit, key: string, timeoutMs?: number): Answer<void, M>;

  /**
   * What the store knows of this limit and key, read in one atomic step: see `inspectIn`. Changes nothing: no state, no expiry, no order of
   * eviction.
   */
  keyState(limit: Limit, key: string, timeoutMs?: number): Answer<Inspection, M>;

  /**
   * Gives back what this process has charged ahead of requests (leases). Limiters and middlewares call it when they close. The store stays
   * open, and others may go on using it. Default: the store charges nothing ahead.
   */
  releaseLeases?(): Answer<void, M>;
}

/**
 * Decides one check. With `commit` it charges an allowed request, and logs a rejected one if the policy has `countRejected`. Without
 * `commit` it changes nothing.
 */
export type DecideOne = (limit: Limit, key: string, cost: number, nowMs: number, commit: boolean) => Decision;

/**
 * For synchronous stores: implements `Store.consumeAll`. If the request passes, every limit that allows it is charged, else none.
 * `dryRun` checks are never charged.
 */
export function decideAll(checks: readonly Check[], nowMs: number, decide: DecideOne): Decision[] {
  const decisions: Decision[] = [];
  let passes = true;
  let uncommitted = checks.length;
  for (let i = 0; i < checks.length; i++) {
    const { limit, key, cost, shadow, dryRun } = checks[i] as Check;
    // If all others pass, the last check alone decides, so it is committed at once.
    const isDecisive = i === checks.length - 1 && passes && dryRun !== true;
    const decision = decide(limit, key, cost, nowMs, isDecisive);
    decisions.push(decision);
    if (isDecisive) uncommitted--;
    if (shadow !== true && !decision.allowed) passes = false;
  }
  for (let i = 0; i < uncommitted; i++) {
    const { limit, key, cost, dryRun } = checks[i] as Check;
    // A rejection is committed too: a log may count it.
    if (dryRun !== true && (passes || decisions[i]?.allowed !== true)) decisions[i] = decide(limit, key, cost, nowMs, true);
  }
  return decisions;
}

/** The identity of a store's data. */
export function scopeOf(store: Store): object {
  return store.scope ?? store;
}

/** @throws FloodgateError unless it has a store's methods. The error shows no text that was given: an address may hold a password. */
export function checkStore<M extends Mode>(where: string, store: Store<M>): Store<M> {
  if (storeMethods.every((method) => hasMethod(store, method))) return store;
  throw invalidOption(`${where}: \`store\` must be a store, but was ${insteadOfStore(store)}`, ["store"]);
}

const storeMethods = ["consume", "consumeAll", "peek", "settle", "reset", "block", "unblock", "keyState"];

/** The store of a limit with slots. @throws FloodgateError if it cannot renew them. */
export function renewingStore<M extends Mode>(store: Store<M>): Store<M> & Required<Pick<Store<M>, "renew">> {
  if (store.renew !== undefined) return store as Store<M> & Required<Pick<Store<M>, "renew">>;
  throw invalidOption("`concurrency` needs a `store` with the method `renew`. Write store: memoryStore(), or redisStore(new Redis(...)).", [
    "store",
  ]);
}

/** Whether it looks like a client of ioredis, redis (node-redis) or another Redis library. */
export function isRedisClient(value: unknown): boolean {
  return hasMethod(value, "sendCommand") || hasMethod(value, "evalsha") || hasMethod(value, "evalSha");
}

/** What was given in place of a store, and what to write. */
function insteadOfStore(given: unknown): string {
  const wrapper = importOf("redisStore", "@floodgate/store-redis");
  const library = importOf("Redis", "ioredis");
  if (isRedisClient(given)) {
    const client = typeof (given as { readonly status?: unknown }).status === "string" ? "new Redis(...)" : "client";
    return `a Redis client. Write store: redisStore(${client}), with ${wrapper}.`;
  }
  if (typeof given === "string") return `a text. For Redis write store: redisStore(new Redis(url)), with ${wrapper} and ${library}.`;
  if (typeof given === "function") return `${shown(given)}. Call it: store: memoryStore(), or redisStore(new Redis(...)).`;
  if (hasMethod(given, "increment") || hasMethod(given, "incr")) {
    return `a store of another library. Write store: memoryStore(), or redisStore(new Redis(...)) with ${wrapper}.`;
  }
  if (hasMethod(given, "consume") && "mode" in (given as object)) {
    const missing = storeMethods.filter((method) => !hasMethod(given, method));
    return `a store without ${missing.join(", ")}. Install one version of all Floodgate packages, or add these.`;
  }
  return `${shown(given)}. Write store: memoryStore().`;
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && typeof (value as Record<string, unknown>)[name] === "function";
}
