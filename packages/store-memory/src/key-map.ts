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
  /** A shard is made with its first key. */
  readonly #shards: Map<string, number>[] = [];
  readonly #shift: number;

  constructor(maxKeys: number) {
    this.#shift = maxKeys <= oneMap ? 0 : 32 - Math.ceil(Math.log2(maxKeys / shardKeys));
  }

  get isEmpty(): boolean {
    return !this.#shards.some(({ size }) => size > 0);
  }

  get(key: string): number | undefined {
    // The usual way, without another call.
    return this.#shards[this.#shift === 0 ? 0 : this.#shardOf(key)]?.get(key);
  }

  set(key: string, slot: number): void {
    const i = this.#shardOf(key);
    this.#shards[i] ??= new Map();
    this.#shards[i].set(key, slot);
  }

  delete(key: string): void {
    this.#shards[this.#shardOf(key)]?.delete(key);
  }

  #shardOf(key: string): number {
    if (this.#shift === 0) return 0;
    const { length } = key;
    let hash = seed ^ length;
    for (let i = 0; i < length; i++) {
      if (i === hashed) i = Math.max(i, length - hashed);
      hash = Math.imul(hash ^ key.charCodeAt(i), 0x85ebca6b);
    }
    // The top bits of a product depend on all bits below them.
    return Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35) >>> this.#shift;
  }
}
