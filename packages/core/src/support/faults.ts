import { FloodgateError, shown } from "../support/errors.js";
import { isPromise } from "../support/promises.js";

/**
 * Throws what a function of the app has thrown, as an object. Frameworks treat some other values as no error: undefined, for example, or
 * "route" in Express.
 */
export function throwFault(reason: unknown): never {
  if (typeof reason === "object" && reason !== null) throw reason;
  throw new FloodgateError(
    "FLOODGATE_NO_ERROR",
    `A function of the app failed with ${shown(reason)}, which is not an error. Throw an Error: throw new Error("why").`,
    { cause: reason },
  );
}

/** Runs a function of the app. What it throws or rejects with becomes an error object. */
export function withFaults<T>(run: () => T): T {
  try {
    const result = run();
    return isPromise(result) ? (result.then(undefined, throwFault) as T) : result;
  } catch (reason) {
    throwFault(reason);
  }
}
