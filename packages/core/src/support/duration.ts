import { FloodgateError, shown } from "./errors.js";

/** `"250ms"`, `"1s"`, `"15m"`, `"1h"`, `"1d"`: a whole number and a unit. */
export type DurationText = `${bigint}${"ms" | "s" | "m" | "h" | "d"}`;

/** A duration: a string such as `"15m"`, or a number of milliseconds that is a multiple of 1000. Other numbers are rejected. */
export type Duration = number | DurationText;

/** From the largest on, with the spellings of people. Weeks come last: they are read, and never written. */
const unitsMs: readonly (readonly [unit: string, ms: number, written: RegExp])[] = [
  ["d", 86_400_000, /^d(ays?)?$/],
  ["h", 3_600_000, /^h(rs?|ours?)?$/],
  ["m", 60_000, /^m(ins?|inutes?)?$/],
  ["s", 1000, /^s(ecs?|econds?)?$/],
  ["ms", 1, /^(ms|milliseconds?)?$/],
  ["w", 604_800_000, /^w(eeks?)?$/],
];

/** Longer than any real use, and short enough that a time plus two durations stays exact. */
export const maxDurationMs: number = 2 ** 50;
const maxDays = Math.floor(maxDurationMs / 86_400_000);

/**
 * Converts a duration to milliseconds. Use it for durations from variables or files, which TypeScript cannot check. A number must be a
 * multiple of 1000, because 60 and 86400 are usually meant as seconds.
 *
 *     parseDuration("15m"); // 900000
 *     parseDuration(process.env.WINDOW ?? "1m", "WINDOW"); // an error names WINDOW
 *
 * @throws FloodgateError `FLOODGATE_INVALID_DURATION` if it is not a duration, is 0, or is above 2^50 ms.
 */
export function parseDuration(duration: number | string, option = "duration"): number {
  return durationOption("", option, duration);
}

/** The same for an option. @param where what was called; the error begins with it. */
export function durationOption(where: string, option: string, duration: number | string): number {
  const ms = typeof duration === "string" ? parseText(duration) : duration;
  const isWhole = typeof ms === "number" && Number.isInteger(ms) && ms >= 1 && ms <= maxDurationMs;
  const isUnclear = (isWhole && ms === duration && ms % 1000 !== 0) || (typeof duration === "string" && /^[1-9]\d{0,9}$/.test(duration));
  if (isWhole && !isUnclear) return ms;
  const what =
    typeof ms === "number" && ms > maxDurationMs
      ? `a duration of at most ${maxDays}d`
      : "a duration: a whole number with a unit (ms, s, m, h, d), or a number of milliseconds that is a multiple of 1000";
  // A text of digits often comes from a variable such as WINDOW_MS.
  const [unit, other] = isUnclear && Number(duration) % 1000 === 0 ? ["ms", "s"] : ["s", "ms"];
  const example = isUnclear
    ? `"${duration}${unit}", or "${duration}${other}" if that is meant`
    : typeof duration === "string" && ms === undefined
      ? durationCode(duration, 1, '"15m"')
      : '"15m"';
  throw new FloodgateError(
    "FLOODGATE_INVALID_DURATION",
    `${where && `${where}: `}\`${option}\` must be ${what}, but was ${shown(duration)}. Write ${option}: ${example}.`,
    { at: [option] },
  );
}

export function durationText(ms: number): DurationText {
  return `${BigInt(ms)}ms`;
}

function parseText(text: string): number | undefined {
  const [, count, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = unitsMs.find(([name]) => name === unit)?.[1];
  return ms && Number(count) * ms;
}

/** Formats milliseconds exactly: `1m 30s`. */
export function formatDuration(ms: number): string {
  const parts: string[] = [];
  let rest = ms;
  for (const [unit, lengthMs] of unitsMs) {
    const count = Math.floor(rest / lengthMs);
    if (count > 0) parts.push(`${count}${unit}`);
    rest -= count * lengthMs;
  }
  return parts.length === 0 ? "0ms" : parts.join(" ");
}

/** A number of these units, or a text such as `"1 hour"`, `"minute"`, `"1.5h"` or `"2w"`, as one of our durations; `usual` if it cannot be read. */
export function durationCode(value: unknown, unitMs: number, usual: string): string {
  const [, count, unit = ""] = (typeof value === "string" && /^\s*(\d{0,12}(?:\.\d{1,3})?)\s*([a-z]{0,12})\s*$/i.exec(value)) || [];
  const read = unitsMs.find(([, , pattern]) => pattern.test(unit.toLowerCase()));
  const given = typeof value === "number" ? value * unitMs : Number(count || (unit && 1)) * (read?.[1] as number);
  // 1.1 hours are 3960000.0000000005 ms. NaN if the unit is unknown.
  const ms = +given.toFixed(3);
  if (!Number.isSafeInteger(ms) || ms < 1) return usual;
  const [name, length] = unitsMs.find(([, length]) => ms % length === 0) as (typeof unitsMs)[number];
  return `"${ms / length}${name}"`;
}
