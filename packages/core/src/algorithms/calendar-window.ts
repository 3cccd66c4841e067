import { conflict, shown, wrongOption } from "../support/errors.js";
import { getOrMake, NewestMap } from "../support/maps.js";
import { checkOptions, nearest, oneOf, quotaNumber, wholeNumber } from "../support/options.js";
import { type AlgorithmDefinition, type Edges, type PolicyBase, register } from "./algorithm.js";
import { Calendar, type CalendarUnit, calendarUnits, isUsualStart, type Weekday, weekdays } from "./calendar.js";
import { windowAlgorithm } from "./fixed-window.js";

/** A count that restarts with each hour, day, week, month or year of a time zone. */
export interface CalendarWindowPolicy extends PolicyBase {
  readonly algorithm: "calendar-window";
  readonly limit: number;
  readonly per: CalendarUnit;
  readonly timeZone: string;
  /** The first day: a weekday, a day of the month, or undefined for other units. */
  readonly startsOn: Weekday | number | undefined;
}

export interface CalendarWindowOptions {
  /** The most units in a window; 0 rejects every request. */
  limit: number;
  /** The unit of the calendar. */
  per: CalendarUnit;
  /** The IANA time zone whose clocks and dates count: `"Europe/Berlin"`. Default `"UTC"`. */
  timeZone?: string;
  /** The first day of a week (default `"monday"`) or of a month (1 to 31, default 1). A month without that day begins on its last. */
  startsOn?: Weekday | number;
}

/** The usual length of a window. Days may have 23 or 25 hours; of months and years it is the longest. */
const usualMs = { hour: 3_600_000, day: 86_400_000, week: 604_800_000, month: 31 * 86_400_000, year: 366 * 86_400_000 };

/** The policies made last. A policy function that answers `calendarWindow({ ... })` for each request gets the same one again. */
const made = new NewestMap<CalendarWindowPolicy>(10_000);

/**
 * At most `limit` units in each hour, day, week, month or year of a time zone: a quota by the calendar. It counts as a fixed window does,
 * with the calendar's edges: days of 23 and 25 hours, months of 28 to 31 days. A day without a midnight begins when the clocks have changed;
 * a day with two begins at the first.
 *
 *     calendarWindow({ limit: 100_000, per: "month", timeZone: "Europe/Berlin" })
 *
 * Equal options give the same policy, so a function of the request may call it: `timeZone: req.tenant.timeZone`. Each zone has its own count.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if a value or the time zone is invalid; `FLOODGATE_CONFLICTING_OPTIONS` for a `startsOn`
 * of an hour, a day or a year.
 */
export function calendarWindow(options: CalendarWindowOptions): CalendarWindowPolicy {
  const where = "calendarWindow";
  checkOptions(
    where,
    options,
    ["limit", "per", "timeZone", "startsOn"],
    `${where}({ limit: 100_000, per: "month", timeZone: "Europe/Berlin" })`,
  );
  const { timeZone = "UTC" } = options;
  const limit = quotaNumber(where, "limit", options.limit);
  const per = oneOf(where, "per", options.per, calendarUnits);
  const startsOn = firstDay(where, per, options.startsOn);
  const id = [limit, per, startsOn, typeof timeZone === "string" && timeZone].join();
  const known = made.get(id);
  if (known !== undefined) return known;
  checkZone(where, timeZone);
  // Upper case, because names of zones differ in more than case, and a store may shorten words.
  const kind = ["calendar-window", per, ...(startsOn === undefined ? [] : [firstOf(startsOn)]), timeZone.toUpperCase()];
  const policy: CalendarWindowPolicy = Object.freeze({
    algorithm: "calendar-window",
    limit,
    per,
    timeZone,
    startsOn,
    quota: limit,
    spanMs: usualMs[per],
    stateKind: kind.join(" "),
  });
  made.set(id, policy);
  return policy;
}

function checkZone(where: string, timeZone: unknown): void {
  // Offsets such as "+02:00" are no zones of the calendar, and older runtimes do not know them.
  if (typeof timeZone === "string" && /^[a-z][\w+/-]*$/i.test(timeZone)) {
    try {
      new Intl.DateTimeFormat("en-US", { timeZone });
      return;
    } catch {
      // The error below says more.
    }
  }
  const near = typeof timeZone === "string" ? nearest(timeZone, Intl.supportedValuesOf("timeZone")) : undefined;
  const example = `timeZone: ${JSON.stringify(near ?? "Europe/Berlin")}`;
  throw wrongOption(where, "timeZone", "the name of an IANA time zone", timeZone, example);
}

function firstDay(where: string, per: CalendarUnit, startsOn: unknown): Weekday | number | undefined {
  if (per === "week") return startsOn === undefined ? "monday" : oneOf(where, "startsOn", startsOn, weekdays);
  if (per === "month") {
    const day = startsOn === undefined ? 1 : wholeNumber(where, "startsOn", startsOn, 1, 15);
    if (day <= 31) return day;
    const example = "startsOn: 31 for the last day of each month";
    throw wrongOption(where, "startsOn", "a day of the month, from 1 to 31", day, example);
  }
  if (startsOn === undefined) return undefined;
  throw conflict(`${where}: \`startsOn\` is for weeks and months, but \`per\` is ${shown(per)}. Leave it out, or write per: "month".`, [
    "startsOn",
  ]);
}

/** The number of a first day: of a week from 0 (Monday), of a month from 1. */
function firstOf(startsOn: Weekday | number): number {
  return typeof startsOn === "number" ? startsOn : weekdays.indexOf(startsOn);
}

/** By the kind of state. There are as many as zones and first days at most. */
const calendars = new Map<string, Calendar>();

function edgesAt({ stateKind, per, timeZone, startsOn = 0 }: CalendarWindowPolicy, nowMs: number): Edges {
  return getOrMake(calendars, stateKind, () => new Calendar(per, timeZone, firstOf(startsOn))).edgesAt(nowMs);
}

export const calendarWindowDefinition: AlgorithmDefinition<CalendarWindowPolicy, CalendarWindowOptions> = register("calendar-window", {
  numbers: ["limit"],
  make: calendarWindow,
  optionsOf: ({ limit, per, timeZone, startsOn }) => ({
    limit,
    per,
    timeZone: timeZone === "UTC" ? undefined : timeZone,
    startsOn: isUsualStart(startsOn) ? undefined : startsOn,
  }),
  algorithms: [windowAlgorithm("calendar-window", ["limit", "spanMs"], edgesAt)],
});
