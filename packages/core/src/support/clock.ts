import { FloodgateError, shown } from "./errors.js";

/** The time in milliseconds since the epoch. */
export type Clock = () => number;

/** Checks a store's clock and makes it return whole milliseconds. Default: `Date.now()`. */
export function wholeMsClock(where: string, clock: Clock | undefined): Clock {
  if (clock === undefined) return () => Date.now();
  if (typeof clock !== "function") {
    throw new FloodgateError(
      "FLOODGATE_INVALID_CLOCK",
      `${where}: \`clock\` must be a function, but was ${shown(clock)}. Write clock: () => Date.now().`,
    );
  }
  return () => {
    const nowMs = clock();
    if (Number.isSafeInteger(nowMs)) return nowMs;
    if (Number.isFinite(nowMs)) return Math.floor(nowMs);
    throw new FloodgateError(
      "FLOODGATE_INVALID_CLOCK",
      `${where}: \`clock\` must return milliseconds since the epoch, but returned ${shown(nowMs)}.`,
    );
  };
}
