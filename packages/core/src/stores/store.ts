import type { Charge } from "../limits/charge.js";
import type { Decision } from "../limits/decision.js";
import type { Limit } from "../limits/limit.js";
import { FloodgateError, shown } from "../support/errors.js";
import { importOf } from "../support/foreign-options.js";

/** Whether a store answers at once or by promise; its limiters and middlewares answer the same way. */
export type Mode = "sync" | "async";

/** A plain value from a store that answers at once, a promise from one that does not. */
export type Answer<T, M extends Mode> = M extends "sync" ? T : Promise<T>;

/** One limit that a request must pass. */
export interface Check {
  readonly limit: Limit;
  /** Whom the limit counts, as `encodeKey` writes it: any string, of any length. */
  readonly key: string;
  /** A whole number of at least 1. */
  readonly cost: number;
  /** A shadow limit is counted like any other, but what it says rejects nothing. */
  readonly shadow?: boolean;
  /** A limit that is only looked at: it must allow like any other, but is never charged. */
  readonly look?: boolean;
}

/**
 * Where state lives, and where a decision is made in one atomic step.
 *
 * State belongs to a limit's name, its policy's `stateKind` and a key: limits that share all three share a count, and a
 * policy with other numbers takes the state over, and reads it clamped. An expired state and none at all are indistinguishable. What
 * is decided is the business of `limit.algorithm`; a store keeps its cells, serialises access to them, and tells the time.
 * A rejection is a result: only faults throw.
 *
 * `timeoutMs` is how long the answer is waited for. A store that answers by promise had better charge nothing after that.
 */
export interface Store<M extends Mode = Mode> {
  /** Whether it answers at once. */
  readonly mode: M;

  /**
   * What the counts belong to, where several store objects share them: the same object in each of them. They are one store then, of
   * which a name is one count, and of which each knows what another has learned of its faults. Default: the store itself.
   */
  readonly scope?: object;

  /**
   * Where other processes reach the same counts: a text that is the same in each of them and for no other counts, such as a key prefix.
   * Receipts are bound to it. Default: no other process does.
   */
  readonly sharedAs?: string | undefined;

  /** Whether each answer settles within the `timeoutMs` that it was asked with; where not, the limiter sees to it. */
  readonly keepsDeadlines?: boolean;

  /** Decides one request, and charges it if it is allowed. */
  consume(limit: Limit, key: string, cost: number, timeoutMs?: number): Answer<Decision, M>;

  /**
   * Decides a request under several limits in one atomic step: where every check but the shadow ones allows, all that
   * allow are charged, except those that are only looked at; else none is. One decision a check, in order, each saying whether that limit alone would allow.
   * No two checks share both limit and key.
   */
  consumeAll(checks: readonly Check[], timeoutMs?: number): Answer<Decision[], M>;

  /** What a request of cost 1 would be told; takes nothing and leaves no trace. */
  peek(limit: Limit, key: string, timeoutMs?: number): Answer<Decision, M>;

  /**
   * Changes a charge to the real `cost`, a whole number of at least 0: gives back what is less, as far as it still counts, and
   * charges what is more, even into debt. It gives back nothing unless the key still has the state that was charged (`charge.state`).
   * The limiter settles each decision once; a charge with a receipt may arrive again from another process, and the store settles that once.
   * @returns the units charged in addition, or below 0 those given back.
   */
  settle(limit: Limit, key: string, charge: Charge, cost: number, timeoutMs?: number): Answer<number, M>;

  /** Forgets the state of exactly this limit and key. */
  reset(limit: Limit, key: string, timeoutMs?: number): Answer<void, M>;
}

/** The same for all store objects that share their counts. */
export function scopeOf(store: Store): object {
  return store.scope ?? store;
}

/** @throws FloodgateError unless it has a store's methods. The error shows no text that was given: an address may hold a password. */
export function checkStore<M extends Mode>(where: string, store: Store<M>): Store<M> {
  const methods = ["consume", "consumeAll", "peek", "settle", "reset"] as const;
  if (typeof store === "object" && store !== null && methods.every((method) => typeof store[method] === "function")) return store;
  throw new FloodgateError("FLOODGATE_INVALID_OPTION", `${where}: \`store\` must be a store, but was ${insteadOfStore(store)}`, {
    at: ["store"],
  });
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
  return `${shown(given)}. Write store: memoryStore().`;
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && typeof (value as Record<string, unknown>)[name] === "function";
}
