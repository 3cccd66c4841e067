import { steadyMs } from "../support/runtime.js";

/** What this process knows of the rejections of a key. */
interface Known {
  /** How many more were left until a ban, at the last answer of the store; 0 where it has not said. */
  left: number;
  /** Whether the last two answers show that no other process counts this key meanwhile. Else `left` may be out of date. */
  alone: boolean;
  atMs: number;
  /** Strikes that the store has not answered yet. */
  pending: number;
}

/** Far more keys than are rejected at once; any other key costs a round trip. */
const mostKeys = 10_000;

/** Other processes may have counted since. */
const knownForMs = 1000;

/** Knows which rejection of a key may begin a ban, so that only that one waits for its count. */
export class Strikes {
  readonly #keys = new Map<string, Known>();

  /** Whether the next rejection of a key may be the last before a ban: yes, unless it surely is not. */
  mayBeLast(key: string): boolean {
    const known = this.#keys.get(key);
    if (known === undefined || steadyMs() - known.atMs > knownForMs) return true;
    return !known.alone || known.left - known.pending <= 1;
  }

  begin(key: string): void {
    const known = this.#keys.get(key);
    if (known !== undefined) {
      known.pending++;
      return;
    }
    const nowMs = steadyMs();
    this.#forgetOld(nowMs);
    this.#keys.set(key, { left: 0, alone: false, atMs: nowMs, pending: 1 });
  }

  /** The keys stand in the order of their last answers. */
  #forgetOld(nowMs: number): void {
    for (const [key, { atMs, pending }] of this.#keys) {
      if (this.#keys.size < mostKeys && (pending > 0 || nowMs - atMs <= knownForMs)) return;
      this.#keys.delete(key);
    }
  }

  /** @param left how many more rejections a ban takes; undefined where the store did not say. */
  end(key: string, left: number | undefined): void {
    const known = this.#keys.get(key);
    if (known === undefined) return;
    this.#keys.delete(key);
    known.pending--;
    known.alone = left !== undefined && known.left - left === 1;
    known.left = left ?? 0;
    known.atMs = steadyMs();
    if (known.left > 0 || known.pending > 0) this.#keys.set(key, known);
  }
}
