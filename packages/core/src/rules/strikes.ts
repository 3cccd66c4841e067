import { steadyMs } from "../support/runtime.js";

/** What this process knows about the rejections of a key. */
interface Known {
  /** The rejections left until a ban, from the store's last answer; 0 if unknown. */
  left: number;
  /** Whether the last two answers show that no other process counts this key. If not, `left` may be outdated. */
  alone: boolean;
  atMs: number;
  /** Strikes in flight to the store. */
  pending: number;
}

/** Far more keys than are rejected at once. A key that is not remembered costs a round trip. */
const maxKeys = 10_000;

/** After this time, other processes may have counted. */
const knownForMs = 1000;

/** Tells which rejection of a key may start a ban, so that only that rejection waits for the store. */
export class Strikes {
  readonly #keys = new Map<string, Known>();

  /** Whether the next rejection of a key may start a ban. False only if it certainly does not. */
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

  /** The map is ordered by the last answers. */
  #forgetOld(nowMs: number): void {
    for (const [key, { atMs, pending }] of this.#keys) {
      if (this.#keys.size < maxKeys && (pending > 0 || nowMs - atMs <= knownForMs)) return;
      this.#keys.delete(key);
    }
  }

  /** @param left how many more rejections start a ban; undefined if the store did not say. */
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
