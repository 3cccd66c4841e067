import { language, nbsp } from "@floodgate/pages/format";
import { percent as percentage } from "../../print/numbers.js";

/** How shares and moments are written. Times are UTC: a log's own zone is not known. */

export const percent = (part: number, whole: number): string => percentage(part, whole).replaceAll(" ", nbsp);

/** A share that somebody has chosen: `0.1 %`. */
export const share = (of: number): string => `${Number((100 * of).toPrecision(6))}${nbsp}%`;

const format = (options: Intl.DateTimeFormatOptions): ((ms: number) => string) => {
  const made = new Intl.DateTimeFormat(language, { ...options, hourCycle: "h23", timeZone: "UTC" });
  return (ms) => made.format(ms);
};
const hour = { hour: "2-digit", minute: "2-digit" } as const;
const minute = format(hour);
const shortDay = format({ day: "numeric", month: "short" });
const month = format({ month: "short", year: "numeric" });

export const dayOf: (ms: number) => string = format({ day: "numeric", month: "short", year: "numeric" });
export const timeOf: (ms: number) => string = format({ ...hour, second: "2-digit" });
export const momentOf = (ms: number): string => `${dayOf(ms)}, ${timeOf(ms)}`;

/** From one moment to another; the day only once if it is the same. */
export function spanOf(fromMs: number, toMs: number, stepMs = 1000): string {
  const time = stepMs % 60_000 === 0 ? minute : timeOf;
  if (stepMs % 86_400_000 === 0) return dayOf(fromMs);
  const sameDay = dayOf(fromMs) === dayOf(toMs);
  return `${dayOf(fromMs)}, ${time(fromMs)} to ${sameDay ? "" : `${dayOf(toMs)}, `}${time(toMs)}`;
}

/** Labels of a time axis: with days where a day begins. */
export function axisTime(ms: number, stepMs: number): string {
  if (stepMs >= 28 * 86_400_000) return month(ms);
  if (stepMs >= 86_400_000 || ms % 86_400_000 === 0) return shortDay(ms);
  return (stepMs % 60_000 === 0 ? minute : timeOf)(ms);
}
