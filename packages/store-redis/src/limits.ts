import type { Limit } from "@floodgate/core/store";
import { type AlgorithmArguments, argumentsOf } from "./algorithms.js";
import { DenyCache, type DenyCacheOptions } from "./deny-cache.js";
import { keySuffix } from "./keys.js";

/** A limit as this store sends it. */
export interface KnownLimit {
  readonly limit: Limit;
  /** What the script is told of the policy. */
  readonly policy: AlgorithmArguments;
  /** What follows the tag in its keys: limits that share it share their counts. */
  readonly suffix: string;
  /** States of keys that were rejected; undefined where a rejection must not be remembered. */
  readonly denied: DenyCache | undefined;
}

/** The limits that a store has been asked for. */
export class KnownLimits {
  readonly #denyCache: DenyCacheOptions | undefined;
  readonly #known = new WeakMap<Limit, KnownLimit>();
  /** By suffix; a cache goes with the last of its limits, for rules may come and go. */
  readonly #denied = new Map<string, WeakRef<DenyCache>>();
  readonly #gone = new FinalizationRegistry<string>((suffix) => {
    if (this.#denied.get(suffix)?.deref() === undefined) this.#denied.delete(suffix);
  });
  /** The one asked for last: most requests ask for the same. */
  #last: KnownLimit | undefined;

  constructor(denyCache: DenyCacheOptions | undefined) {
    this.#denyCache = denyCache;
  }

  get(limit: Limit): KnownLimit {
    if (this.#last?.limit !== limit) this.#last = this.#known.get(limit) ?? this.#add(limit);
    return this.#last;
  }

  #add(limit: Limit): KnownLimit {
    const suffix = keySuffix(limit.name, limit.policy);
    const known = { limit, policy: argumentsOf(limit.policy), suffix, denied: this.#deniedOf(limit, suffix) };
    this.#known.set(limit, known);
    return known;
  }

  /** A rejection that counts must reach Redis. */
  #deniedOf({ policy }: Limit, suffix: string): DenyCache | undefined {
    if (this.#denyCache === undefined || (policy.algorithm === "sliding-window-log" && policy.countRejected)) return undefined;
    const known = this.#denied.get(suffix)?.deref();
    if (known !== undefined) return known;
    const denied = new DenyCache(this.#denyCache);
    this.#denied.set(suffix, new WeakRef(denied));
    this.#gone.register(denied, suffix);
    return denied;
  }
}
