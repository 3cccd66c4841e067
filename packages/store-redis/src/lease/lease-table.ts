import { type Limit, whyNoLease, workEndsWithRequest } from "@floodgate/core/store";
import { KeyLease } from "./key-lease.js";

/** The most keys that are counted before the oldest counts are dropped. */
const maxKeys = 10_000;

/** The leases of a limit by key, and how hot its keys are. Keys that were not asked for in the last life are forgotten. */
export class LeaseTable<Known> {
  /** The limit, as its steps need it. */
  readonly known: Known;
  readonly lifeMs: number;
  /** Keys with grants or a fetch. */
  readonly held: Map<string, KeyLease> = new Map();
  /** Keys that were asked for since `#turnedMs`, and before that. */
  #recent = new Map<string, KeyLease>();
  #earlier = new Map<string, KeyLease>();
  #turnedMs = Number.NEGATIVE_INFINITY;

  constructor(known: Known, lifeMs: number) {
    this.known = known;
    this.lifeMs = lifeMs;
  }

  of(key: string, nowMs: number): KeyLease {
    const ageMs = nowMs - this.#turnedMs;
    if (ageMs >= this.lifeMs || ageMs < 0) this.#turn(nowMs);
    return this.#recent.get(key) ?? this.#return(key, nowMs);
  }

  #return(key: string, nowMs: number): KeyLease {
    if (this.#recent.size >= maxKeys) this.#turn(nowMs);
    const lease = this.#earlier.get(key) ?? this.held.get(key) ?? new KeyLease(nowMs);
    this.#recent.set(key, lease);
    return lease;
  }

  #turn(nowMs: number): void {
    this.#earlier = this.#recent;
    this.#recent = new Map();
    this.#turnedMs = nowMs;
  }
}

/** How long leases of a limit live; undefined if it has none. On Workers, a request that ends would lose the lease that it fetches. */
export function lifeOf(limit: Limit, storeLifeMs: number | undefined): number | undefined {
  if (workEndsWithRequest || limit.lease === false || (storeLifeMs === undefined && limit.lease !== true)) return undefined;
  return whyNoLease(limit.policy) === undefined ? (storeLifeMs ?? defaultLifeMs) : undefined;
}

export const defaultLifeMs = 100;
export const longestLifeMs = 10_000;
