import { type EventListener, FloodgateError } from "@floodgate/core";
import { type Clock, checkOptions, functionOrNothing, wholeMsClock, wholeNumber } from "@floodgate/core/store";
import { type MemoryStore, TableStore } from "./table-store.js";

export interface MemoryStoreOptions {
  /**
   * The most keys in memory, over all limits of this store: up to 2^23 (8,388,608), default 100,000. A full store evicts expired keys
   * first, then the key that has used least of its limit, and blocked keys last, nearest reset first.
   */
  maxKeys?: number;
  /** Returns milliseconds since the epoch. Default `Date.now`. */
  clock?: Clock;
  /** Called for each live key that a full store evicted, after the request that needed its place. */
  onEvent?: EventListener;
}

/** The most keys that a Map of V8 holds however often keys come and go. Deleted keys fill up a Map of 2^24, which then throws. */
const mostKeys = 2 ** 23;

/**
 * A store in this process. It is synchronous, starts no timers and allocates no object per key.
 *
 *     const store = memoryStore({ maxKeys: 1_000_000 });
 *     app.use(rateLimit({ limit: 100, window: "1m", store }));
 *
 * @throws FloodgateError if an option is invalid.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkOptions("memoryStore", options, ["maxKeys", "clock", "onEvent"], "memoryStore({ maxKeys: 100_000 })");
  const maxKeys = options.maxKeys === undefined ? 100_000 : wholeNumber("memoryStore", "maxKeys", options.maxKeys, 1, 100_000);
  if (maxKeys > mostKeys) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `memoryStore: \`maxKeys\` can be at most ${mostKeys} (2^23), but was ${maxKeys}. Write maxKeys: 1_000_000.`,
    );
  }
  functionOrNothing("memoryStore", "onEvent", options.onEvent, "(event) => console.log(event)");
  return new TableStore(maxKeys, wholeMsClock("memoryStore", options.clock), options.onEvent);
}
