import { doubled, MinHeap } from "../support/min-heap.js";

/** How many keys a store holds at once: a key is held from its first request until its state is the same as none. */
export class LiveKeys {
  /** By the time at which each key is looked at again. */
  readonly #heap = new MinHeap();
  #untilMs: Float64Array = new Float64Array(64);
  #isHeld: Uint8Array = new Uint8Array(64);
  most = 0;

  /** A key has a state from `nowMs` until `untilMs`. Times never go back. */
  hold(key: number, nowMs: number, untilMs: number): void {
    while (this.#heap.lowest <= nowMs) this.#lookAtFirst(nowMs);
    while (key >= this.#untilMs.length) {
      this.#untilMs = doubled(this.#untilMs);
      const isHeld = new Uint8Array(this.#untilMs.length);
      isHeld.set(this.#isHeld);
      this.#isHeld = isHeld;
    }
    this.#untilMs[key] = untilMs;
    if (this.#isHeld[key] === 1 || untilMs <= nowMs) return;
    this.#isHeld[key] = 1;
    this.#heap.push(key, untilMs);
    if (this.#heap.size > this.most) this.most = this.#heap.size;
  }

  #lookAtFirst(nowMs: number): void {
    const key = this.#heap.pop();
    const untilMs = this.#untilMs[key] as number;
    if (untilMs > nowMs) this.#heap.push(key, untilMs);
    else this.#isHeld[key] = 0;
  }
}
