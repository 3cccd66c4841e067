const months: Readonly<Record<string, number>> = {
  Jan: 1,
  Feb: 2,
  Mar: 3,
  Apr: 4,
  May: 5,
  Jun: 6,
  Jul: 7,
  Aug: 8,
  Sep: 9,
  Oct: 10,
  Nov: 11,
  Dec: 12,
};
const daysBefore = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];

/** Milliseconds since the epoch of `17/May/2015:10:05:03 +0000`. Undefined if it is no such time. */
export function parseClfTime(text: string): number | undefined {
  if (text.length !== 26 || text[2] !== "/" || text[6] !== "/" || text[11] !== ":" || text[14] !== ":" || text[17] !== ":")
    return undefined;
  const month = months[text.slice(3, 6)];
  const sign = text[21] === "-" ? -1 : text[21] === "+" ? 1 : 0;
  if (month === undefined || sign === 0 || text[20] !== " ") return undefined;
  const offset = sign * (digits(text, 22, 2) * 60 + digits(text, 24, 2));
  const ms = utc(digits(text, 7, 4), month, digits(text, 0, 2), digits(text, 12, 2), digits(text, 15, 2), digits(text, 18, 2));
  return ms === undefined || Number.isNaN(offset) ? undefined : ms - offset * 60_000;
}

const iso = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(?:(Z|UTC)|([+-])(\d\d):?(\d\d))?$/i;

/** Milliseconds since the epoch of an ISO 8601 time, which is UTC unless it says otherwise. Undefined if it is no such time. */
export function parseIsoTime(text: string): number | undefined {
  const match = iso.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction, , sign, offsetHours, offsetMinutes] = match;
  const ms = utc(Number(year), Number(month), Number(day), Number(hour), Number(minute), Number(second));
  if (ms === undefined) return undefined;
  const offset = sign === undefined ? 0 : (sign === "-" ? -1 : 1) * (Number(offsetHours) * 60 + Number(offsetMinutes));
  return ms - offset * 60_000 + (fraction === undefined ? 0 : Math.floor(Number(`0.${fraction}`) * 1000));
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
    if (ms >= 1e11 && ms < 1e14) return Math.floor(ms);
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

/** `Fri, 21 Nov 2026 10:00:00 GMT`, as morgan writes it by default. */
function parseHttpTime(text: string): number | undefined {
  const match = /^[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT$/.exec(text);
  const month = months[match?.[2] ?? ""];
  if (match === null || month === undefined) return undefined;
  return utc(Number(match[3]), month, Number(match[1]), Number(match[4]), Number(match[5]), Number(match[6]));
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

/** The number that `count` digits stand for; NaN if they are none. */
function digits(text: string, from: number, count: number): number {
  let value = 0;
  for (let i = from; i < from + count; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = 10 * value + digit;
  }
  return value;
}

/** Faster than `Date.UTC`, and refuses the 31st of June. */
function utc(year: number, month: number, day: number, hour: number, minute: number, second: number): number | undefined {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const lastDay = month === 2 && isLeap ? 29 : (daysBefore[month] as number) - (daysBefore[month - 1] as number);
  // A leap second is the next second.
  if (!(year >= 1970 && month >= 1 && month <= 12 && day >= 1 && day <= lastDay && hour <= 23 && minute <= 59 && second <= 60))
    return undefined;
  const before = year - 1;
  const leapDays = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400) - 477;
  const days = 365 * (year - 1970) + leapDays + (daysBefore[month - 1] as number) + (isLeap && month > 2 ? 1 : 0) + day - 1;
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000;
}
