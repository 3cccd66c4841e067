/** How figures, durations and moments are written, in one place. Times are UTC: a log's own zone is not known. */

const language = "en";
/** Keeps a figure and its unit on one line. */
const nbsp = "\u00a0";
const whole = new Intl.NumberFormat(language);
const short = new Intl.NumberFormat(language, { notation: "compact", maximumSignificantDigits: 3 });

export const count = (value: number): string => whole.format(value);

/** A count where there is little room: 12,345 reads 12.3K. */
export const shortCount = (value: number): string => (value < 10_000 ? whole.format(value) : short.format(value));

export const plural = (value: number, one: string): string => `${count(value)}${nbsp}${one}${value === 1 ? "" : "s"}`;

/** A share as a percentage. A small share is never shown as 0, and an incomplete one never as 100. */
export function percent(part: number, all: number): string {
  if (part === 0 || all === 0) return `0${nbsp}%`;
  const share = (100 * part) / all;
  if (share < 0.01) return `<${nbsp}0.01${nbsp}%`;
  if (part < all && share > 99.9) return `>${nbsp}99.9${nbsp}%`;
  return `${share < 1 ? share.toFixed(2) : share < 99.95 && part < all ? share.toFixed(1) : "100"}${nbsp}%`;
}

/** A share that somebody has chosen: `0.1 %`. */
export const share = (of: number): string => `${Number((100 * of).toPrecision(6))}${nbsp}%`;

/** A duration in its two largest units. Null: for ever. */
export function duration(ms: number | null): string {
  if (ms === null) return "forever";
  if (ms < 1000) return `${whole.format(ms)}${nbsp}ms`;
  if (ms < 10_000) return `${Number((ms / 1000).toFixed(1))}${nbsp}s`;
  const seconds = Math.round(ms / 1000);
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor((seconds % 86_400) / 3600), "h"],
    [Math.floor((seconds % 3600) / 60), "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  const shown = parts.slice(first, first + 2).filter(([value]) => value > 0);
  return shown.map(([value, unit]) => `${count(value)}${nbsp}${unit}`).join(" ");
}

const day = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const minute = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" });
const second = new Intl.DateTimeFormat(language, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
  timeZone: "UTC",
});

export const dayOf = (ms: number): string => day.format(ms);
export const timeOf = (ms: number): string => second.format(ms);
export const momentOf = (ms: number): string => `${day.format(ms)}, ${second.format(ms)}`;

/** From one moment to another; the day only once if it is the same. */
export function spanOf(fromMs: number, toMs: number, stepMs = 1000): string {
  const time = stepMs % 60_000 === 0 ? minute : second;
  if (stepMs % 86_400_000 === 0) return day.format(fromMs);
  const sameDay = day.format(fromMs) === day.format(toMs);
  return `${day.format(fromMs)}, ${time.format(fromMs)} to ${sameDay ? "" : `${day.format(toMs)}, `}${time.format(toMs)}`;
}

/** Labels of a time axis: with days where a day begins. */
export function axisTime(ms: number, stepMs: number): string {
  const date = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", timeZone: "UTC" });
  if (stepMs >= 28 * 86_400_000) return new Intl.DateTimeFormat(language, { month: "short", year: "numeric", timeZone: "UTC" }).format(ms);
  if (stepMs >= 86_400_000 || ms % 86_400_000 === 0) return date.format(ms);
  return (stepMs % 60_000 === 0 ? minute : second).format(ms);
}
