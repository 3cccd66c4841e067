import { FloodgateError, shown } from "../support/errors.js";
import { isPromise } from "../support/promises.js";

/**
 * Throws on what a function of the app's has thrown, as every framework's error handling takes it: undefined is no error to some of
 * them, and "route" tells Express to go on.
 */
export function throwFault(reason: unknown): never {
  if (typeof reason === "object" && reason !== null) throw reason;
  throw new FloodgateError(
    "FLOODGATE_NO_ERROR",
    `A function that the limit was given failed with ${shown(reason)}, which is no error. Throw one: throw new Error("why").`,
    { cause: reason },
  );
}

/** Runs a function of the app's: what it throws, now or later, is an error. */
export function withFaults<T>(run: () => T): T {
  try {
    const result = run();
    return isPromise(result) ? (result.then(undefined, throwFault) as T) : result;
  } catch (reason) {
    throwFault(reason);
  }
}
