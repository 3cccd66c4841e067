import { checkStore, isRedisClient, type Store, scopeOf } from "../decide/store.js";
import { FloodgateError, shown } from "../support/errors.js";
import { checkOptions, nearest, wholeNumber } from "../support/options.js";

/** A store in this process that decides while the main store is down. */
export interface Fallback {
  readonly store: Store<"sync">;
  /** The part of each limit that this process may use: `1 / n` for n processes. Default 1. */
  readonly share?: number;
}

/**
 * What happens to a request that the store cannot decide: `"allow"` lets it pass, `"deny"` answers 503, and a fallback store decides by
 * itself. A fallback store must be synchronous, like `memoryStore()`.
 */
export type OnStoreError = "allow" | "deny" | Store<"sync"> | Fallback;

/** The options of limiters and middlewares for a store that fails. */
export interface FailureOptions {
  /**
   * The maximum time of a decision in milliseconds, for asynchronous stores. Default 100. Time in which the event loop of this process is
   * blocked does not count, up to 10 seconds for each decision.
   */
  timeoutMs?: number;
  /**
   * What happens to a request that the store cannot decide. Default `"allow"`. Without this option, an error of a synchronous store is an
   * error of the request.
   */
  onStoreError?: OnStoreError;
}

export const failureOptionNames: readonly string[] = ["timeoutMs", "onStoreError"];

/** @throws FloodgateError if the timeout is invalid, or too long for a timer. */
export function checkTimeout(where: string, timeoutMs: number | undefined): number {
  if (timeoutMs === undefined) return 100;
  if (wholeNumber(where, "timeoutMs", timeoutMs) < 2 ** 31) return timeoutMs;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`timeoutMs\` must be less than 2^31 (a timer holds no more), but was ${timeoutMs}. Write timeoutMs: 100.`,
  );
}

/** A checked `onStoreError`. */
export type FailureMode = "allow" | "deny" | { readonly store: Store<"sync">; readonly processes: number };

/** @throws FloodgateError if the option is invalid. */
export function checkOnStoreError(where: string, option: OnStoreError | undefined, failing: Store): FailureMode {
  if (option === undefined || option === "allow") return "allow";
  if (option === "deny") return "deny";
  const what = `${where}: onStoreError`;
  if (typeof option !== "object" || option === null) {
    const near = typeof option === "string" ? nearest(option, ["allow", "deny"]) : undefined;
    // An address may hold a password.
    const given = typeof option === "string" && /[:@]/.test(option) ? "an address" : shown(option);
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`onStoreError\` must be "allow", "deny" or a store that answers at once, but was ${given}. ${near === undefined ? "Write onStoreError: memoryStore()." : `Did you mean "${near}"?`}`,
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
  throw new FloodgateError("FLOODGATE_INVALID_OPTION", `${what} must be another store than \`store\`. Write onStoreError: memoryStore().`);
}

/** The number of processes, from the share of each. */
function processesOf(what: string, share: unknown): number {
  const processes = typeof share === "number" ? Math.round(1 / share) : 0;
  if (processes >= 1 && Math.abs((share as number) * processes - 1) < 1e-9) return processes;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${what}: \`share\` must be 1 / n for n processes, but was ${shown(share)}. Write share: 1 / 4 for four processes.`,
  );
}
