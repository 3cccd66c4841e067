import type { Change, DatabaseDriver, DecideAgain, Row, Swap, Swapped, ValidTime } from "../src/index.js";

/** A database in memory: rows by key, each with the number of its writing. It refuses rows that another process may lock in another order. */
export class MapDriver implements DatabaseDriver {
  readonly rows = new Map<string, Row & { readonly endsMs: number }>();
  /** Its own clock does not drift from the one that measures round trips. */
  nowMs = (): number => Math.floor(performance.timeOrigin + performance.now());
  #writings = 0;

  async load(keys: readonly string[]) {
    return this.#rowsOf(keys);
  }

  async swap(changes: readonly Change[], valid: ValidTime, decideAgain?: DecideAgain) {
    return this.#swap({ changes, valid }, decideAgain);
  }

  async swapMany(swaps: readonly Swap[]) {
    const keys = swaps.flatMap(({ changes }) => changes.map(({ key }) => key));
    if (new Set(keys).size < keys.length) throw new Error("two changes have the same key");
    return swaps.map((each) => this.#swap(each));
  }

  #swap({ changes: first, valid: { fromMs, untilMs } }: Swap, decideAgain?: DecideAgain): Swapped {
    if (first.some(({ key }, i) => i > 0 && key <= (first[i - 1] as Change).key))
      throw new Error("the changes are not in the order of their keys");
    const nowMs = this.nowMs();
    const isSameFor = (changes: readonly Change[]) => changes.every(({ key, was }) => this.rows.get(key)?.version === was);
    const keys = first.map(({ key }) => key);
    const changes = isSameFor(first) ? first : (decideAgain?.(this.#rowsOf(keys)) ?? first);
    const isSame = isSameFor(changes);
    const done = isSame && nowMs >= fromMs && nowMs <= untilMs;
    for (const { key, value, lifeMs } of done ? changes : []) {
      if (value !== undefined) this.rows.set(key, { value, version: ++this.#writings, endsMs: nowMs + lifeMs });
    }
    return { ...this.#rowsOf(keys), done };
  }

  #rowsOf(keys: readonly string[]) {
    return { nowMs: this.nowMs(), rows: keys.map((key) => this.rows.get(key)) };
  }

  async sweep(most: number): Promise<void> {
    for (const [key, { endsMs }] of this.rows) if (endsMs < this.nowMs() && most-- > 0) this.rows.delete(key);
  }
}
