import { FloodgateError } from "@floodgate/core";

/** The database has not answered since the request was made. */
export function timeout(timeoutMs: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_STORE_TIMEOUT",
    `The database did not answer within ${Math.round(timeoutMs)} ms. It may or may not have written the decision; if not, it will not. Check its latency and connections, or raise \`timeoutMs\`.`,
  );
}

/** The database answers, but others wrote the same key first each time, or this process has too much to do. */
export function queueTimeout(timeoutMs: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_QUEUE_TIMEOUT",
    `The request waited ${Math.round(timeoutMs)} ms behind others that the database answered. Nothing was charged. Too many processes write this key at once, or this process has more requests than it can handle: raise \`timeoutMs\`, or spread the load.`,
  );
}

/** Other processes had the lock of a SQLite file all the time. */
export function lockTimeout(cause: unknown): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_QUEUE_TIMEOUT",
    "Other processes kept the lock of the SQLite file until the deadline. Nothing was charged. Set `PRAGMA journal_mode = WAL` and `PRAGMA synchronous = NORMAL`, raise `timeoutMs`, or use a database server.",
    { cause },
  );
}

/** What to do about errors of databases that do not say it. */
const advices: readonly (readonly [error: RegExp, advice: string])[] = [
  [
    /permission denied for|command denied to|denied for user .* to database/,
    "Allow it: GRANT SELECT, INSERT, UPDATE, DELETE on the table, and in Postgres USAGE on its schema",
  ],
  [
    /No database selected/,
    "Give the pool a `database`: without one, MySQL does not write several rows at once, also not in `table` with its schema",
  ],
  [
    /read[- ]only/i,
    "Give the store connections that may write: to the primary, not to a replica. After a failover, close those to the old primary",
  ],
];

/** A call of the driver failed. */
export function fault(cause: unknown): FloodgateError {
  if (cause instanceof FloodgateError) return cause;
  const text = cause instanceof Error ? cause.message : String(cause);
  const short = (text.length > 300 ? `${text.slice(0, 297)}...` : text).replace(/\s+/g, " ");
  const [, advice] = advices.find(([error]) => error.test(short)) ?? [];
  const message = `The database could not decide: ${short}`;
  return new FloodgateError("FLOODGATE_STORE_FAULT", advice === undefined ? message : `${message.replace(/\.$/, "")}. ${advice}.`, {
    cause,
  });
}

/** The keys of a request are in parts of the database that no change can write together. */
export function separateShards(shards: ReadonlySet<string | undefined>): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_DIFFERENT_STORES",
    `The limits of a request have keys in ${shards.size} parts of the database, so that they cannot be charged together. Nothing was charged. Let \`shardOf\` return one text for all keys of a request, or leave it out.`,
  );
}
