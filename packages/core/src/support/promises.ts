/** What a function of the request may answer at once or by promise. */
export type Promised<T> = T | PromiseLike<T>;

/** Goes on with a value now, or with a promise's value later: one piece of code for both kinds of store. */
export function andThen<T, R>(value: T | PromiseLike<T>, next: (value: T) => R | PromiseLike<R>): R | PromiseLike<R> {
  return isPromise(value) ? value.then(next) : next(value);
}

export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** Of a fault that is known already no other needs to be told: promises that nobody waits for any more may reject unheard. */
export function abandon(values: readonly unknown[]): void {
  for (const value of values) if (isPromise(value)) value.then(undefined, () => undefined);
}

/**
 * Does work that no request waits for. Failures go to `onError`.
 * @returns a promise if the work is not done yet.
 */
export function runInBackground(work: () => unknown, onError: (error: unknown) => void): PromiseLike<unknown> | undefined {
  try {
    const done = work();
    return isPromise(done) ? done.then(undefined, onError) : undefined;
  } catch (error) {
    onError(error);
    return undefined;
  }
}
