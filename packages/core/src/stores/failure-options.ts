import { FloodgateError, shown } from "../support/errors.js";
import { checkOptions, nearest, wholeNumber } from "../support/options.js";
import { checkStore, isRedisClient, type Store, scopeOf } from "./store.js";

/** A store of this process that limits while the other is away. */
export interface Fallback {
  readonly store: Store<"sync">;
  /** The part of each limit that this process may use on its own: `1 / n`, for n processes that share it. Default 1. */
  readonly share?: number;
}

/**
 * What happens to a request that the store cannot decide: it passes, it is turned away (503), or another store decides, which
 * must answer at once (a memory store does).
 */
export type OnStoreError = "allow" | "deny" | Store<"sync"> | Fallback;

/** What a limiter and a middleware are told of a store that fails. */
export interface FailureOptions {
  /**
   * How many milliseconds a decision may take where the store answers by promise; default 100. Time in which this process's event loop
   * does not run (a handler computes) does not count, up to 10 seconds for each decision.
   */
  timeoutMs?: number;
  /**
   * What happens to a request that the store cannot decide; default `"allow"`. A store that answers at once is no server that
   * can be away: left out, a fault of it is an error of the request.
   */
  onStoreError?: OnStoreError;
}

export const failureWords: readonly string[] = ["timeoutMs", "onStoreError"];

/** @throws FloodgateError where it is no time that a timer holds. */
export function checkTimeout(where: string, timeoutMs: number | undefined): number {
  if (timeoutMs === undefined) return 100;
  if (wholeNumber(where, "timeoutMs", timeoutMs) < 2 ** 31) return timeoutMs;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`timeoutMs\` must be less than 2^31 (a timer holds no more), but was ${timeoutMs}. Write timeoutMs: 100.`,
  );
}

/** What happens where a store fails, checked. */
export type WhenStoreFails = "allow" | "deny" | { readonly store: Store<"sync">; readonly processes: number };

/** @throws FloodgateError where it is none of the choices. */
export function checkOnStoreError(where: string, option: OnStoreError | undefined, failing: Store): WhenStoreFails {
  if (option === undefined || option === "allow") return "allow";
  if (option === "deny") return "deny";
  const what = `${where}: onStoreError`;
  if (typeof option !== "object" || option === null) {
    const near = typeof option === "string" ? nearest(option, ["allow", "deny"]) : undefined;
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`onStoreError\` must be "allow", "deny" or a store that answers at once, but was ${shown(option)}. ${near === undefined ? "Write onStoreError: memoryStore()." : `Did you mean "${near}"?`}`,
    );
  }
  if ("consume" in option || isRedisClient(option)) return { store: checkFallback(what, option as Store<"sync">, failing), processes: 1 };
  checkOptions(what, option, ["store", "share"], "onStoreError: { store: memoryStore(), share: 1 / 4 }");
  return { store: checkFallback(what, option.store, failing), processes: option.share === undefined ? 1 : processesOf(what, option.share) };
}

function checkFallback(what: string, store: Store<"sync">, failing: Store): Store<"sync"> {
  if (isRedisClient(store) || checkStore(what, store).mode !== "sync") {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${what} takes a store in this process, which answers at once. Write onStoreError: memoryStore().`,
    );
  }
  if (scopeOf(store) !== scopeOf(failing)) return store;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${what} takes another store than the one that fails. Write onStoreError: memoryStore().`,
  );
}

/** How many processes share a limit of which each has this part. */
function processesOf(what: string, share: unknown): number {
  const processes = typeof share === "number" ? Math.round(1 / share) : 0;
  if (processes >= 1 && Math.abs((share as number) * processes - 1) < 1e-9) return processes;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${what}: \`share\` must be one part of a whole number of parts, but was ${shown(share)}. Write share: 1 / 4 where four processes share a limit.`,
  );
}
