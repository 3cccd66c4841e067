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
