export function getOrMake<K, V>(map: { get(key: K): V | undefined; set(key: K, value: V): unknown }, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

/**
 * A map of bounded size: it remembers at least the newest `count` keys, and at most twice as many. It is two Maps in turn, because a Map
 * whose oldest key is deleted again and again steps over all earlier deletions each time.
 */
export class NewestMap<V> {
  readonly #count: number;
  #newer = new Map<string, V>();
  #older = new Map<string, V>();

  constructor(count: number) {
    this.#count = count;
  }

  get(key: string): V | undefined {
    return this.#newer.get(key) ?? this.#older.get(key);
  }

  set(key: string, value: V): void {
    if (this.#newer.size >= this.#count && !this.#newer.has(key)) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(key, value);
  }

  delete(key: string): void {
    this.#newer.delete(key);
    this.#older.delete(key);
  }
}

/** An object for each owner and name. It ends with what refers to it, because an owner may outlive many. Workers without `WeakRef` keep them. */
export class WeakScopes<T extends object> {
  readonly #byOwner = new WeakMap<object, Map<string, Pick<WeakRef<T>, "deref">>>();

  getOrMake(owner: object, name: string, make: () => T): T {
    const known = getOrMake(this.#byOwner, owner, () => new Map());
    const scope = known.get(name)?.deref() ?? make();
    known.set(name, typeof WeakRef === "function" ? new WeakRef(scope) : { deref: () => scope });
    return scope;
  }
}

/** Objects in the order in which they were added. The list does not keep them alive. It stays empty in Workers without `WeakRef`. */
export class WeakList<T extends object> {
  #items: WeakRef<T>[] = [];
  /** When the list has grown to this size, it drops items that are gone. */
  #pruneAt = 64;

  add(item: T): void {
    if (typeof WeakRef !== "function") return;
    if (this.#items.length >= this.#pruneAt) {
      this.#items = this.#items.filter((other) => other.deref() !== undefined);
      this.#pruneAt = Math.max(64, 2 * this.#items.length);
    }
    this.#items.push(new WeakRef(item));
  }

  delete(item: T): void {
    this.#items = this.#items.filter((other) => other.deref() !== item);
  }

  values(): T[] {
    return this.#items.map((item) => item.deref()).filter((item) => item !== undefined);
  }
}
