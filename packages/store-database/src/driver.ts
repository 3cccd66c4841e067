/** A value, or a promise of it: a driver may answer at once. */
export type Promised<T> = T | PromiseLike<T>;

/** Identifies one write of a row. No other write has it, not even one of an earlier row with the same key. Only the driver reads it. */
export type Version = string | number | bigint;

/** A row of the database. */
export interface Row {
  /** ASCII text. */
  readonly value: string;
  readonly version: Version;
}

/** A change of one row. */
export interface Change {
  /** At most 400 characters of printable ASCII. */
  readonly key: string;
  /** The version that the row must have; undefined if there must be no row. */
  readonly was: Version | undefined;
  /** The new value; undefined if the row stays as it is, and only its version is compared. */
  readonly value: string | undefined;
  /** When the row ends, in milliseconds from now. The database may delete it then, and not before. */
  readonly lifeMs: number;
}

/** The time in which a change is valid, by the database's clock in milliseconds since the epoch. */
export interface ValidTime {
  readonly fromMs: number;
  readonly untilMs: number;
  /** Whether the answer need not say the database's time, because it was learned a moment ago. */
  readonly isTimeKnown?: boolean | undefined;
}

/** What the database holds now. */
export interface Loaded {
  /** The database's clock, in whole milliseconds since the epoch. */
  readonly nowMs: number;
  /** The row of each key, in the order of the keys. */
  readonly rows: readonly (Row | undefined)[];
}

/** The result of a change. */
export interface Swapped extends Omit<Loaded, "nowMs"> {
  /** As `Loaded` has it. Undefined only with `isTimeKnown`. */
  readonly nowMs?: number | undefined;
  /** Whether all changes were written. If not, none was. */
  readonly done: boolean;
}

/**
 * Decides on other rows than those that were expected, at once, and returns the changes to write instead of the first. For a driver that reads
 * and writes under one lock of the database: no other process can then be first.
 */
export type DecideAgain = (loaded: Loaded) => readonly Change[];

/** Changes that are written together or not at all, and the time in which they are valid. */
export interface Swap {
  readonly changes: readonly Change[];
  readonly valid: ValidTime;
}

/**
 * What `databaseStore` needs of a database: rows of text by key, and compare-and-swap over several of them. A driver never retries what may
 * have been written: it rejects, and the store decides nothing.
 */
export interface DatabaseDriver {
  /** Reads rows. Rows that have ended may be among them. `untilMs`: nobody waits for the answer longer, by `Date.now()`. */
  load(keys: readonly string[], untilMs?: number): Promised<Loaded>;
  /**
   * Writes all changes if every row still has its version and the database's clock is in `valid`; else none. Answers the rows as they are
   * now, with their new versions. No two changes have the same key, and they are in the same order in every process: by key.
   * A driver need not use `decideAgain`.
   */
  swap(changes: readonly Change[], valid: ValidTime, decideAgain?: DecideAgain): Promised<Swapped>;
  /**
   * Optional: many calls of `swap` in one round trip. Each is written or not, whatever becomes of the others. No two changes of the call have
   * the same key. With this function, requests that wait at the same moment share round trips, although their keys differ.
   */
  swapMany?(swaps: readonly Swap[]): Promised<readonly Swapped[]>;
  /** Deletes at most `most` rows that have ended. Default: the database does it by itself. */
  sweep?(most: number): Promised<unknown>;
  /**
   * The part of the database that has a request's key, if no change can be atomic across parts. Then row keys begin with this text as JSON
   * without spaces (its hash if it is long) and a space, may have 600 characters, and the keys of one call are in one part.
   */
  readonly shardOf?: ((key: string) => string) | undefined;
  /** The most rows of one change, if there is a bound. Requests that share a limit go in several changes then. */
  readonly maxRows?: number | undefined;
  /** Where a request's I/O ends with its response: lets it go on until `work` is done. That of Workers. */
  readonly waitUntil?: ((work: Promise<unknown>) => void) | undefined;
  /** Identity of the data in this process, such as the client. Stores of one scope and prefix count as one store. Default: the driver. */
  readonly scope?: object | undefined;
}
