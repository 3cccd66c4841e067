/** What every runtime has beside the language; typed here because core has no types of any of them. */
declare const performance: { now(): number };
declare const setTimeout: (run: () => void, ms: number) => unknown;
declare const clearTimeout: (timer: unknown) => void;

/** A clock that never steps, in milliseconds from some moment of this process. */
export function steadyMs(): number {
  return performance.now();
}

/** Runs something in `ms` milliseconds (up to 2^31). The timer keeps no process alive. */
export function startTimer(run: () => void, ms: number): unknown {
  const timer = setTimeout(run, ms);
  (timer as { unref?: () => void }).unref?.();
  return timer;
}

export function stopTimer(timer: unknown): void {
  clearTimeout(timer);
}
