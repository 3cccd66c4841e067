import type { Limit } from "@floodgate/core/store";
import { type AlgorithmArguments, argumentsOf } from "./algorithms.js";
import { longestAgeMs } from "./changes.js";
import { type CachedLimit, DenyCache, type DenyCacheOptions } from "./deny-cache.js";
import { keySuffix } from "./keys.js";
import { type LeanCheck, LeanScripts } from "./lean.js";
import { LeaseTable, lifeOf } from "./lease/lease-table.js";

/** A limit, prepared for sending. */
export interface KnownLimit extends CachedLimit {
  /** The policy as script arguments. */
  readonly policy: AlgorithmArguments;
  /** The limit in lean scripts; undefined if only the general script decides it. */
  readonly lean: LeanCheck["known"]["lean"];
  readonly scripts: LeanScripts;
  /** The cache of rejected keys; undefined if rejections must not be cached. */
  readonly denied: DenyCache | undefined;
  /** The units that this process holds ahead of requests; undefined if it takes none. */
  readonly lease: LeaseTable<KnownLimit> | undefined;
}

/** A key of a limit, as the deny cache knows it. */
export interface CachedKey {
  readonly known: KnownLimit;
  readonly key: string;
}

/** A check with its Redis key. */
export interface KeyedCheck extends CachedKey {
  readonly redisKey: string;
  readonly cost: number;
  readonly shadow: boolean;
  /** Whether the limit must allow but is never charged. */
  readonly dryRun: boolean;
}

/** Prepares limits, and memoises them. */
export class KnownLimits {
  /** The cache of rejected keys, shared by all limits. */
  readonly denied: DenyCache | undefined;
  readonly #maxAgeMs: number;
  readonly #extendedAgeMs: number;
  readonly #leaseMs: number | undefined;
  readonly #known = new WeakMap<Limit, KnownLimit>();
  readonly #scripts: LeanScripts;
  /** The last two lookups: most requests use the same limit, or the same two. */
  #last: KnownLimit | undefined;
  #other: KnownLimit | undefined;

  /** @param leaseMs how long leases live; undefined if only limits lease that say so. */
  constructor(denyCache: DenyCacheOptions | undefined, leaseMs?: number) {
    this.denied = denyCache && new DenyCache(denyCache);
    this.#scripts = new LeanScripts(this.denied !== undefined);
    this.#maxAgeMs = denyCache?.maxAgeMs ?? 0;
    this.#extendedAgeMs = denyCache?.changes.isRead ? Math.max(longestAgeMs, this.#maxAgeMs) : this.#maxAgeMs;
    this.#leaseMs = leaseMs;
  }

  get(limit: Limit): KnownLimit {
    const last = this.#last;
    if (last?.limit === limit) return last;
    const known = this.#other?.limit === limit ? this.#other : (this.#known.get(limit) ?? this.#add(limit));
    this.#other = last;
    this.#last = known;
    return known;
  }

  #add(limit: Limit): KnownLimit {
    const suffix = keySuffix(limit.name, limit.policy);
    const policy = argumentsOf(limit.policy, limit.holdMs);
    const kindSize = suffix.length - suffix.lastIndexOf(":") - 1;
    const lifeMs = lifeOf(limit, this.#leaseMs);
    const maxAgeMs = Math.min(this.#maxAgeMs, lifeMs ?? this.#maxAgeMs);
    const { recoveryMs, delays = recoveryMs !== undefined } = limit.algorithm;
    const known: KnownLimit & { lease: LeaseTable<KnownLimit> | undefined } = {
      limit,
      policy,
      suffix,
      lean: policy.holds.length > 0 ? undefined : { ...policy, kindSize, id: `${policy.number} ${kindSize} ${policy.parameters} ` },
      scripts: this.#scripts,
      // With countRejected each rejection must reach Redis. Held units may come back at any moment.
      denied: limit.policy.holdMs !== undefined || limit.algorithm.countsRejected?.(limit.policy) ? undefined : this.denied,
      maxAgeMs,
      // A bucket or a queue flows faster once a request of a larger plan has charged it, and nobody announces that.
      extendedAgeMs: delays || lifeMs !== undefined ? maxAgeMs : this.#extendedAgeMs,
      lease: undefined,
    };
    if (lifeMs !== undefined) known.lease = new LeaseTable(known, lifeMs);
    this.#known.set(limit, known);
    return known;
  }
}
