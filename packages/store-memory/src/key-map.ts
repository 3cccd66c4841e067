/**
 * Up to so many keys one Map is enough. V8 copies all of a Map when it grows or has seen many deletions, and that takes some
 * milliseconds.
 */
const oneMap = 1 << 17;
/** Keys of a shard, about. It is copied in less than a millisecond. */
const shardKeys = 1 << 14;
/** Characters of each end of a key that its shard depends on. */
const hashed = 16;
/** An attacker who knows the shards could fill one of them alone, and so make it slow to copy. */
const seed = Math.floor(Math.random() * 2 ** 32) | 0;

/** A Map from keys to whole numbers, in shards if there may be many keys. */
export class KeyMap {
  readonly #shards: Map<string, number>[];
  readonly #only: Map<string, number> | undefined;
  readonly #shift: number;

  constructor(maxKeys: number) {
    const bits = maxKeys <= oneMap ? 0 : Math.ceil(Math.log2(maxKeys / shardKeys));
    this.#shards = Array.from({ length: 2 ** bits }, () => new Map());
    this.#only = bits === 0 ? this.#shards[0] : undefined;
    this.#shift = 32 - bits;
  }

  get(key: string): number | undefined {
    return (this.#only ?? this.#shardOf(key)).get(key);
  }

  set(key: string, value: number): void {
    (this.#only ?? this.#shardOf(key)).set(key, value);
  }

  delete(key: string): void {
    (this.#only ?? this.#shardOf(key)).delete(key);
  }

  #shardOf(key: string): Map<string, number> {
    const { length } = key;
    let hash = seed ^ length;
    const head = length <= 2 * hashed ? length : hashed;
    for (let i = 0; i < head; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x85ebca6b);
    for (let i = Math.max(head, length - hashed); i < length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x85ebca6b);
    // The top bits of a product depend on all bits below them.
    return this.#shards[Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35) >>> this.#shift] as Map<string, number>;
  }
}
