/** A value or a promise of it. */
export type Promised<T> = T | PromiseLike<T>;

/** Calls `next` with a value now, or with a promise's value later: one implementation for both kinds of stores. */
export function andThen<T, R>(value: T | PromiseLike<T>, next: (value: T) => R | PromiseLike<R>): R | PromiseLike<R> {
  return isPromise(value) ? value.then(next) : next(value);
}

export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** All values: now, or by promise if one of them is a promise. */
export function allOf<T>(values: readonly Promised<T>[]): Promised<readonly T[]> {
  return values.some(isPromise) ? Promise.all(values) : (values as readonly T[]);
}

/** Ignores the rejections of promises that are no longer awaited, after another error was already reported. */
export function abandon(values: readonly unknown[]): void {
  for (const value of values) if (isPromise(value)) value.then(undefined, () => undefined);
}

/** Does work that may fail, now or later. After a failure the result is that of `onError`, which may throw another error. */
export function attempt<T>(work: () => Promised<T>, onError: (error: unknown) => T): Promised<T> {
  try {
    const done = work();
    return isPromise(done) ? done.then(undefined, onError) : done;
  } catch (error) {
    return onError(error);
  }
}

/**
 * Does work that no request waits for. Failures go to `onError`.
 * @returns a promise if the work is not done yet.
 */
export function runInBackground(work: () => unknown, onError: (error: unknown) => void): PromiseLike<unknown> | undefined {
  const done = attempt<unknown>(work, onError);
  return isPromise(done) ? done : undefined;
}
