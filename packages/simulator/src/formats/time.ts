const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const clf = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?: ([+-])(\d\d)(\d\d))?$/;

/** Milliseconds since the epoch of `17/May/2015:10:05:03 +0000`, or of HAProxy's `17/May/2015:10:05:03.123`, as UTC. Undefined if it is no such time. */
export function parseClfTime(text: string): number | undefined {
  const [, day, month = "", year, hour, minute, second, fraction = 0, ...offset] = clf.exec(text) ?? [];
  return withFraction(utc([year, months.indexOf(month) + 1, day, hour, minute, second], offset), fraction);
}

const iso = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(?:(Z|UTC)|([+-])(\d\d):?(\d\d))?$/i;

/** Milliseconds since the epoch of an ISO 8601 time, which is UTC unless it says otherwise. Undefined if it is no such time. */
export function parseIsoTime(text: string): number | undefined {
  const [, year, month, day, hour, minute, second, fraction = 0, , ...offset] = iso.exec(text) ?? [];
  return withFraction(utc([year, month, day, hour, minute, second], offset), fraction);
}

/** @param fraction the decimals of a second. */
function withFraction(ms: number | undefined, fraction: string | number): number | undefined {
  return ms === undefined ? undefined : ms + Math.floor(Number(`0.${fraction}`) * 1000);
}

/**
 * Milliseconds since the epoch of a number of seconds, milliseconds, microseconds or nanoseconds since then: what makes a year of today.
 * Undefined if none does.
 */
export function parseEpoch(value: number): number | undefined {
  if (!(value > 0)) return undefined;
  // 1e8 seconds are in 1973, 1e11 in the year 5138.
  for (const unit of [1000, 1, 1e-3, 1e-6]) {
    const ms = value * unit;
    // A number holds only every 256th nanosecond of today, so a whole millisecond may come out as a little less.
    if (ms >= 1e11 && ms < 1e14) return Math.floor(ms + 0.0005);
  }
  return undefined;
}

/** Reads a time in any notation that a log may have. */
export function parseAnyTime(value: unknown): number | undefined {
  if (typeof value === "number") return parseEpoch(value);
  if (typeof value !== "string") return undefined;
  if (/^\d+(?:\.\d+)?$/.test(value)) return parseEpoch(Number(value));
  const text = value.startsWith("[") && value.endsWith("]") ? value.slice(1, -1) : value;
  return parseIsoTime(text) ?? parseClfTime(text) ?? parseHttpTime(text);
}

const http = /^[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT$/;

/** `Fri, 21 Nov 2026 10:00:00 GMT`, as morgan writes it by default. */
function parseHttpTime(text: string): number | undefined {
  const [, day, month = "", year, hour, minute, second] = http.exec(text) ?? [];
  return utc([year, months.indexOf(month) + 1, day, hour, minute, second]);
}

/** Remembers the last time that was parsed: neighbouring lines often have the same. */
export function remembered(parse: (text: string) => number | undefined): (text: string) => number | undefined {
  let lastText = "";
  let lastMs: number | undefined;
  return (text) => {
    if (text !== lastText) {
      lastMs = parse(text);
      lastText = text;
    }
    return lastMs;
  };
}

type Part = string | number | undefined;

/** A time in UTC, or with an offset. Undefined if it lacks a part, or is the 31st of June. A leap second is the next second. */
function utc(parts: readonly Part[], [sign, offsetHours, offsetMinutes]: readonly Part[] = []): number | undefined {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.map(Number);
  if (!(year >= 1970 && month >= 1 && hour <= 23 && minute <= 59 && second <= 60)) return undefined;
  const midnight = new Date(Date.UTC(year, month - 1, day));
  if (midnight.getUTCDate() !== day || midnight.getUTCMonth() !== month - 1) return undefined;
  const offset = sign === undefined ? 0 : (sign === "-" ? -1 : 1) * (Number(offsetHours) * 60 + Number(offsetMinutes));
  return midnight.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000;
}
