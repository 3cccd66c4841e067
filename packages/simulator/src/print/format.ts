import { formatDuration } from "@floodgate/core/rules";

/** `1,234,567`. */
export function number(value: number): string {
  return value.toLocaleString("en");
}

/** `1 rule`, `2 rules`. */
export function count(value: number, thing: string): string {
  return `${number(value)} ${thing}${value === 1 ? "" : "s"}`;
}

/** A share as a percentage: `0.12 %`. A small share is never shown as 0, and an incomplete one never as 100. */
export function percent(part: number, whole: number): string {
  if (part === 0 || whole === 0) return "0 %";
  if (part === whole) return "100 %";
  const share = (100 * part) / whole;
  if (share < 0.01) return "< 0.01 %";
  return share > 99.9 ? "> 99.9 %" : `${share.toFixed(share < 1 ? 2 : 1)} %`;
}

/** A duration, above ten seconds in whole seconds. */
export function duration(ms: number): string {
  if (ms === Number.POSITIVE_INFINITY) return "forever";
  return formatDuration(ms < 10_000 ? Math.round(ms) : Math.round(ms / 1000) * 1000);
}

/** A time in UTC: `2026-11-21 14:03:05`. */
export function time(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

/** `132 bytes`, `1.2 MB`. */
export function bytes(value: number): string {
  for (const [unit, size] of [
    ["GB", 1e9],
    ["MB", 1e6],
    ["kB", 1e3],
  ] as const) {
    if (value >= size) return `${(value / size).toFixed(value < 10 * size ? 1 : 0)} ${unit}`;
  }
  return count(value, "byte");
}
