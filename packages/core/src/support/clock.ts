import { FloodgateError, shown } from "./errors.js";

/** The time in milliseconds since the epoch. */
export type Clock = () => number;

/** A store's clock, checked: whole milliseconds, from `Date.now()` unless another is given. */
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
      `${where}: \`clock\` must answer milliseconds since the epoch, but answered ${shown(nowMs)}.`,
    );
  };
}
