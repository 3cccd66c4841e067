import type { Limit as LimitUnder } from "../algorithms/algorithm.js";
import { algorithmOf, type Policy } from "../algorithms/registry.js";
import { FloodgateError, shown } from "../support/errors.js";

export type Limit = LimitUnder<Policy>;

/** One limit that a request must pass. */
export interface Check {
  readonly limit: Limit;
  /** The key, as `encodeKey` writes it: any string, of any length. */
  readonly key: string;
  /** A whole number of at least 1. */
  readonly cost: number;
  /** A shadow limit is counted but never rejects the request. */
  readonly shadow?: boolean;
  /** A limit that may reject the request but is never charged. */
  readonly dryRun?: boolean;
}

export function createLimit(name: string, policy: Policy, lease?: boolean): Limit {
  return Object.freeze({ name, policy, algorithm: algorithmOf(policy), lease });
}

/**
 * Why units of a policy can never be leased; undefined if they can. A queue gives each request its own delay, and a log with `countRejected`
 * must see each rejection.
 */
export function whyNoLease(policy: Policy): string | undefined {
  const { delays, countsRejected } = algorithmOf(policy);
  if (policy.holdMs !== undefined) return "units that come back are to be had by every process at once";
  if (delays) return "a leakyBucket gives each request its place in the queue";
  return countsRejected?.(policy) ? "`countRejected` must see each rejected request" : undefined;
}

/** Checks the option `lease` of a limit. @throws FloodgateError if it is not a boolean, or is true for a policy whose units cannot be leased. */
export function checkLease(where: string, lease: unknown, policies: readonly Policy[]): boolean | undefined {
  if (lease === undefined || lease === false) return lease;
  if (lease !== true) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`lease\` must be true or false, but was ${shown(lease)}. Write lease: true. How long a lease lives is an option of the store: redisStore(redis, { lease: { lifeMs: 200 } }).`,
      { at: ["lease"] },
    );
  }
  const why = policies.map(whyNoLease).find((reason) => reason !== undefined);
  if (why === undefined) return true;
  throw new FloodgateError(
    "FLOODGATE_CONFLICTING_OPTIONS",
    `${where}: \`lease: true\` takes units ahead of requests, but ${why}. Leave \`lease\` out, or use another policy.`,
    { at: ["lease"] },
  );
}

/** Names appear in headers, Redis keys and metrics, so they must be printable ASCII. */
export function checkName(where: string, name: unknown): string {
  if (typeof name === "string" && /^[\x20-\x7e]{1,128}$/.test(name)) return name;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`name\` must be 1 to 128 printable ASCII characters (it appears in the response headers), but was ${shown(name)}. Write name: "api".`,
  );
}
