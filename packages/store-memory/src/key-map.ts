/** The most keys in one Map. V8 copies it when it grows or has seen many deletions: for this many keys that takes some milliseconds. */
const oneMap = 1 << 17;
/** About how many keys a shard holds. Copying it takes less than a millisecond. */
const shardKeys = 1 << 14;
/** How many characters at each end of a key choose its shard. */
const hashed = 16;
/** Without it an attacker could choose keys of one shard, and make that one slow to copy. */
const seed = Math.floor(Math.random() * 2 ** 32) | 0;

/** A Map from keys to slots, split into shards if `maxKeys` is large. */
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

  set(key: string, slot: number): void {
    (this.#only ?? this.#shardOf(key)).set(key, slot);
  }

  delete(key: string): void {
    (this.#only ?? this.#shardOf(key)).delete(key);
  }

  #shardOf(key: string): Map<string, number> {
    const { length } = key;
    let hash = seed ^ length;
    const head = Math.min(length, hashed);
    for (let i = 0; i < head; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x85ebca6b);
    for (let i = Math.max(head, length - hashed); i < length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x85ebca6b);
    // The top bits of a product depend on all bits below them.
    return this.#shards[Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35) >>> this.#shift] as Map<string, number>;
  }
}
