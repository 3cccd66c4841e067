import { FloodgateError, shown } from "./errors.js";

/** `"250ms"`, `"1s"`, `"15m"`, `"1h"`, `"1d"`: a whole number and a unit. */
export type DurationText = `${bigint}${"ms" | "s" | "m" | "h" | "d"}`;

/** A time: a whole number of milliseconds, or a text such as `"15m"`. */
export type Duration = number | DurationText;

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Longer than any use, and short enough that an instant and two of them stay exact. */
const maxDurationMs = 2 ** 50;
const maxDays = Math.floor(maxDurationMs / unitMs.d);

/**
 * Milliseconds of a duration, also of one that comes from a variable or a file.
 * @throws FloodgateError `FLOODGATE_INVALID_DURATION` where it is not a whole number of at least 1 ms, or above 2^50 of them.
 */
export function parseDuration(duration: number | string, option = "duration"): number {
  const ms = typeof duration === "string" ? parseText(duration) : duration;
  if (typeof ms === "number" && Number.isInteger(ms) && ms >= 1 && ms <= maxDurationMs) return ms;
  const what =
    typeof ms === "number" && ms > maxDurationMs
      ? `a duration of at most ${maxDays}d`
      : "a duration: a whole number of milliseconds of at least 1, or a whole number with a unit (ms, s, m, h, d)";
  throw new FloodgateError(
    "FLOODGATE_INVALID_DURATION",
    `\`${option}\` must be ${what}, but was ${shown(duration)}. Write ${option}: "15m".`,
    { at: [option] },
  );
}

function parseText(text: string): number | undefined {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text);
  if (match === null) return undefined;
  return Number(match[1]) * unitMs[match[2] as keyof typeof unitMs];
}
