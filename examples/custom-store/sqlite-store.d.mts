import type { Store } from "@floodgate/core/store";

export interface SqliteStoreOptions {
  /** Milliseconds since the epoch. Default `Date.now`. */
  clock?: () => number;
  /** How long to wait for other processes, in milliseconds. Default 1000. */
  busyMs?: number;
}

/** A store in a SQLite file, for the processes of one machine. `path` is the file, made if it does not exist, or `":memory:"`. */
export function sqliteStore(path: string, options?: SqliteStoreOptions): Store<"sync"> & { close(): void };
