/** How figures, durations and moments are written. One place, so that the same figure reads the same everywhere. */

/** The language of the page: figures and dates read as its words do. */
export const language = "en";

/** Keeps a figure and its unit on one line. */
export const nbsp = "\u00a0";
const whole = new Intl.NumberFormat(language);
const oneDigit = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const shortForm = new Intl.NumberFormat(language, { notation: "compact", maximumSignificantDigits: 3 });

/** A whole number with its thousands apart. */
export const count = (value: number): string => whole.format(value);

/** A count where there is little room: 12,345 reads 12.3K. */
export const shortCount = (value: number): string => (Math.abs(value) < 10_000 ? count(value) : shortForm.format(value));

/** Requests per second. Small rates keep a digit or two: "0" would mean that nobody sends requests. */
export function rate(perSecond: number): string {
  if (Number.isInteger(perSecond) || perSecond >= 100) return shortCount(Math.round(perSecond));
  if (perSecond >= 1) return oneDigit.format(perSecond);
  return perSecond < 0.01 ? `<${(0.01).toLocaleString(language)}` : perSecond.toLocaleString(language, { maximumFractionDigits: 2 });
}

/** A share of 0 to 1. It says 0 or 100 % only if it is that. */
export function percent(share: number): string {
  const value = share * 100;
  if (value === 0 || value === 100) return `${value}${nbsp}%`;
  if (value < 0.1) return `<${(0.1).toLocaleString(language)}${nbsp}%`;
  if (value > 99.9) return `>${(99.9).toLocaleString(language)}${nbsp}%`;
  return `${value < 10 ? oneDigit.format(value) : count(Math.min(99, Math.round(value)))}${nbsp}%`;
}

/** Milliseconds, as a store's latency has them. */
export function latency(ms: number): string {
  if (ms >= 1000) return `${oneDigit.format(ms / 1000)}${nbsp}s`;
  if (ms >= 10) return `${count(Math.round(ms))}${nbsp}ms`;
  if (ms >= 1) return `${oneDigit.format(ms)}${nbsp}ms`;
  return `${count(Math.max(1, Math.round(ms * 1000)))}${nbsp}µs`;
}

/** A wait in words: its two largest units. Null stands for Infinity, which JSON does not have. */
export function duration(ms: number | null): string {
  if (ms === null || !Number.isFinite(ms)) return "forever";
  if (ms < 1000) return `${count(Math.round(ms))}${nbsp}ms`;
  if (ms < 10_000) return `${Number((ms / 1000).toFixed(1))}${nbsp}s`;
  const seconds = Math.round(ms / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor((seconds % 86_400) / 3600), "h"],
    [Math.floor((seconds % 3600) / 60), "min"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([value]) => value > 0);
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${count(value)}${nbsp}${unit}`)
    .join(" ");
}

const clockTime = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dayAndTime = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

export function axisTime(ms: number, stepMs: number): string {
  return stepMs % 60_000 === 0 ? clockTime.format(ms).slice(0, 5) : clockTime.format(ms);
}

/** A moment of today as its time, another with its date. Local time. */
export function moment(atMs: number, nowMs: number): string {
  const sameDay = new Date(atMs).toDateString() === new Date(nowMs).toDateString();
  return (sameDay ? clockTime : dayAndTime).format(atMs);
}

/** The name of the time zone of this browser, for example "Europe/Berlin (GMT+1)". */
export function timeZone(): string {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const offset = new Intl.DateTimeFormat(language, { timeZoneName: "shortOffset" })
    .formatToParts()
    .find(({ type }) => type === "timeZoneName")?.value;
  return offset === undefined || offset === name ? name : `${name} (${offset})`;
}

export const plural = (value: number, one: string, many: string = `${one}s`): string => `${count(value)}${nbsp}${value === 1 ? one : many}`;

/** Shows characters that one cannot see (controls, marks of direction, zero-width ones) as their code points, and cuts what is very long. */
export function visible(text: string, longest = 300): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}… (${count(text.length)} characters)` : text;
  return cut.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|\p{Surrogate}/gu,
    (c) => `⟨${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}
