import type { Edges } from "./algorithm.js";

export const calendarUnits = ["hour", "day", "week", "month", "year"] as const;
export type CalendarUnit = (typeof calendarUnits)[number];

export const weekdays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] as const;
export type Weekday = (typeof weekdays)[number];

/** Whether windows begin on the usual day: weeks on Monday, months on the first. */
export function isUsualStart(startsOn: Weekday | number | undefined): boolean {
  return startsOn === undefined || startsOn === "monday" || startsOn === 1;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Above the offset of any zone from UTC. */
const maxOffsetMs = 16 * hourMs;

/** What the clocks of a zone show, in milliseconds, as if they showed UTC. */
type WallClock = (ms: number) => number;

/**
 * The windows of a calendar. They are found with `Intl`, and kept until time leaves them.
 *
 * - Days, weeks, months and years begin at the first instant at which the clocks show midnight or later. So a day without a midnight begins
 *   when the clocks have changed, and a day with two begins at the first.
 * - Hours begin whenever the clocks show a whole hour, or skip one.
 */
export class Calendar {
  readonly #per: CalendarUnit;
  readonly #timeZone: string;
  /** The first day: of a week from 0 (Monday), of a month from 1. */
  readonly #first: number;
  #edges: Edges = [0, 0, 0, 0];

  constructor(per: CalendarUnit, timeZone: string, first: number) {
    this.#per = per;
    this.#timeZone = timeZone;
    this.#first = first;
  }

  edgesAt(nowMs: number): Edges {
    if (nowMs < this.#edges[1] || nowMs >= this.#edges[2]) {
      // The formatter is not kept: there may be hundreds of zones, and it is large.
      const wall = wallClockOf(this.#timeZone);
      this.#edges = this.#per === "hour" ? hoursAround(wall, nowMs) : this.#datesAround(wall, nowMs);
    }
    return this.#edges;
  }

  #datesAround(wall: WallClock, nowMs: number): Edges {
    // Clocks that went back over midnight show the day before once more: then the window has begun already.
    const shows = wall(nowMs);
    for (let by = 0; ; by++) {
      const startAt = (n: number): number => firstAt(wall, this.#startOf(shows, by + n));
      const end = startAt(1);
      if (nowMs < end) return [startAt(-1), startAt(0), end, startAt(2)];
    }
  }

  /** What the clocks show when the unit that holds a time begins; or one `by` units later. */
  #startOf(wallMs: number, by: number): number {
    const day = Math.floor(wallMs / dayMs);
    const date = new Date(wallMs);
    const year = date.getUTCFullYear();
    switch (this.#per) {
      case "week":
        // Day 4 was a Monday.
        return (day - modulo(day - 4 - this.#first, 7) + 7 * by) * dayMs;
      case "month": {
        const month = date.getUTCMonth();
        return this.#monthStart(year, wallMs < this.#monthStart(year, month) ? month - 1 + by : month + by);
      }
      case "year":
        return Date.UTC(year + by, 0, 1);
      default:
        return (day + by) * dayMs;
    }
  }

  /** A month that lacks the first day begins on its last. */
  #monthStart(year: number, month: number): number {
    return Math.min(Date.UTC(year, month, this.#first), Date.UTC(year, month + 1, 0));
  }
}

function wallClockOf(timeZone: string): WallClock {
  if (timeZone === "UTC") return (ms) => ms;
  const number = "numeric";
  const fields = { year: number, month: number, day: number, hour: number, minute: number, second: number } as const;
  const format = new Intl.DateTimeFormat("en-US", { ...fields, timeZone, calendar: "gregory", hourCycle: "h23" });
  return (ms) => {
    const [month, day, year, hour, minute, second] = (format.format(ms).match(/\d+/g) as string[]).map(Number) as [number, ...number[]];
    return Date.UTC(year as number, month - 1, day, hour, minute, second) + modulo(ms, 1000);
  };
}

/** The first instant at which the clocks show this time or a later one. */
function firstAt(wall: WallClock, wallMs: number): number {
  let fromMs = wallMs - maxOffsetMs;
  for (;;) {
    const expectedMs = wallMs - offsetAt(wall, fromMs);
    const changeMs = changeBefore(wall, fromMs, expectedMs) ?? expectedMs;
    if (wall(changeMs) >= wallMs) return changeMs;
    fromMs = changeMs;
  }
}

function hoursAround(wall: WallClock, nowMs: number): Edges {
  // No hour is longer than two.
  const edges = [nextHour(wall, nowMs - 6 * hourMs)];
  while (edges.length < 4 || (edges.at(-2) as number) <= nowMs) edges.push(nextHour(wall, edges.at(-1) as number));
  return edges.slice(-4) as unknown as Edges;
}

/** The start of the next hour. Clocks that go back within an hour prolong it. */
function nextHour(wall: WallClock, fromMs: number): number {
  const expectedMs = fromMs + hourMs - modulo(wall(fromMs), hourMs);
  const changeMs = changeBefore(wall, fromMs, expectedMs) ?? expectedMs;
  const shows = wall(changeMs);
  const isLater = Math.floor(shows / hourMs) > Math.floor(wall(fromMs) / hourMs);
  return isLater || modulo(shows, hourMs) === 0 ? changeMs : nextHour(wall, changeMs);
}

/** When the clocks change, between two times; undefined if they do not. */
function changeBefore(wall: WallClock, fromMs: number, untilMs: number): number | undefined {
  const offset = offsetAt(wall, fromMs);
  let low = fromMs;
  let high = untilMs - 1;
  if (offsetAt(wall, high) === offset) return undefined;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(wall, middle) === offset) low = middle;
    else high = middle;
  }
  return high;
}

function offsetAt(wall: WallClock, ms: number): number {
  return wall(ms) - ms;
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
