export const speeds: readonly number[] = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200, 43_200];

/** About how long the whole timeline plays. */
const playMs = 18_000;

/** The speed that fits a timeline. */
export function speedFor(spanMs: number): number {
  return [...speeds].reverse().find((factor) => spanMs / factor >= playMs * 0.75) ?? 1;
}

/** A clock that a person starts, stops and moves. */
export class Player {
  readonly #lengthMs: () => number;
  readonly #onMove: () => void;
  /** How many milliseconds go by in one. */
  speed = 1;
  #atMs = 0;
  #frame: number | undefined;
  #lastMs = 0;

  /** @param lengthMs returns where it stops. @param onMove is called at each step, and when it starts or stops. */
  constructor(lengthMs: () => number, onMove: () => void) {
    this.#lengthMs = lengthMs;
    this.#onMove = onMove;
  }

  get atMs(): number {
    return this.#atMs;
  }

  get playing(): boolean {
    return this.#frame !== undefined;
  }

  play(): void {
    if (this.playing) return;
    if (this.#atMs >= this.#lengthMs()) this.#atMs = 0;
    this.#lastMs = performance.now();
    this.#frame = requestAnimationFrame(this.#step);
    this.#onMove();
  }

  toggle(): void {
    if (this.playing) this.pause();
    else this.play();
  }

  pause(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    this.#onMove();
  }

  seek(atMs: number): void {
    this.#atMs = Math.max(0, Math.min(atMs, this.#lengthMs()));
    this.#onMove();
  }

  readonly #step = (): void => {
    const nowMs = performance.now();
    // A tab in the background gets no frames: it goes on where it was.
    const passedMs = Math.min(nowMs - this.#lastMs, 100);
    this.#lastMs = nowMs;
    this.#frame = requestAnimationFrame(this.#step);
    this.seek(this.#atMs + passedMs * this.speed);
    if (this.#atMs >= this.#lengthMs()) this.pause();
  };
}
