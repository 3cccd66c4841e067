import type { Limit } from "@floodgate/core/store";
import { type AlgorithmArguments, argumentsOf } from "./algorithms.js";
import { DenyCache, type DenyCacheOptions } from "./deny-cache.js";
import { blockSuffix, keySuffix } from "./keys.js";

/** A limit, prepared for sending. */
export interface KnownLimit {
  readonly limit: Limit;
  /** The policy as script arguments. */
  readonly policy: AlgorithmArguments;
  /** The end of its Redis keys. Limits with the same suffix share their counts. */
  readonly suffix: string;
  /** The end of the Redis keys of its blocks. Limits of the same name share their blocks. */
  readonly blockSuffix: string;
  /** The cache of rejected keys; undefined if rejections must not be cached. */
  readonly denied: DenyCache | undefined;
}

/** Prepares limits, and memoises them. */
export class KnownLimits {
  readonly #denyCache: DenyCacheOptions | undefined;
  readonly #known = new WeakMap<Limit, KnownLimit>();
  /** By suffix. A cache is collected with the last limit that uses it, because rules may change. */
  readonly #denied = new Map<string, WeakRef<DenyCache>>();
  readonly #gone = new FinalizationRegistry<string>((suffix) => {
    if (this.#denied.get(suffix)?.deref() === undefined) this.#denied.delete(suffix);
  });
  /** The last two lookups: most requests use the same limit, or the same two. */
  #last: KnownLimit | undefined;
  #other: KnownLimit | undefined;

  constructor(denyCache: DenyCacheOptions | undefined) {
    this.#denyCache = denyCache;
  }

  get(limit: Limit): KnownLimit {
    const last = this.#last;
    if (last?.limit === limit) return last;
    const known = this.#other?.limit === limit ? this.#other : (this.#known.get(limit) ?? this.#add(limit));
    this.#other = last;
    this.#last = known;
    return known;
  }

  /** Invalidates the deny caches of a key under all limits of a name. */
  forget(name: string, key: string, done: Promise<unknown>): void {
    for (const [suffix, denied] of this.#denied) {
      if (suffix.slice(0, suffix.lastIndexOf(":")) === `:${name}`) denied.deref()?.forget(key, done);
    }
  }

  #add(limit: Limit): KnownLimit {
    const suffix = keySuffix(limit.name, limit.policy);
    const known = {
      limit,
      policy: argumentsOf(limit.policy),
      suffix,
      blockSuffix: blockSuffix(limit.name),
      denied: this.#deniedOf(limit, suffix),
    };
    this.#known.set(limit, known);
    return known;
  }

  /** With countRejected there is no cache, because each rejection must reach Redis. */
  #deniedOf({ policy, algorithm }: Limit, suffix: string): DenyCache | undefined {
    if (this.#denyCache === undefined || algorithm.countsRejected?.(policy)) return undefined;
    const known = this.#denied.get(suffix)?.deref();
    if (known !== undefined) return known;
    const denied = new DenyCache(this.#denyCache);
    this.#denied.set(suffix, new WeakRef(denied));
    this.#gone.register(denied, suffix);
    return denied;
  }
}
