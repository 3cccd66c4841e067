import fc from "fast-check";
import { Temporal } from "temporal-polyfill";
import { describe, expect, it } from "vitest";
import { runs } from "../../../../test/runs.js";
import { type CalendarUnit, calendarUnits, weekdays } from "../../src/algorithms/calendar.js";
import { calendarWindow } from "../../src/algorithms/calendar-window.js";
import type { CalendarWindowPolicy } from "../../src/store.js";
import { algorithmOf } from "../../src/store.js";

const zones = [...Intl.supportedValuesOf("timeZone"), "UTC"];

function edgesOf(policy: CalendarWindowPolicy, atMs: number): readonly number[] {
  return algorithmOf(policy).edges?.(policy, atMs) as readonly number[];
}

/** The first day of the unit that holds a date, and the first day of the next. */
function daysOf(
  per: CalendarUnit,
  startsOn: string | number | undefined,
  date: Temporal.PlainDate,
): [Temporal.PlainDate, Temporal.PlainDate] {
  switch (per) {
    case "week": {
      const start = date.subtract({ days: (date.dayOfWeek - 1 - weekdays.indexOf(startsOn as "monday") + 7) % 7 });
      return [start, start.add({ weeks: 1 })];
    }
    case "month": {
      const inMonth = (months: number) =>
        date
          .with({ day: 1 })
          .add({ months })
          .with({ day: startsOn as number });
      const first = Temporal.PlainDate.compare(date, inMonth(0)) < 0 ? -1 : 0;
      return [inMonth(first), inMonth(first + 1)];
    }
    case "year":
      return [date.with({ month: 1, day: 1 }), date.with({ month: 1, day: 1 }).add({ years: 1 })];
    default:
      return [date, date.add({ days: 1 })];
  }
}

/** The window of days that holds an instant, by Temporal's first instant of a day. */
function windowOf({ per, timeZone, startsOn }: CalendarWindowPolicy, atMs: number): [number, number] {
  const startOf = (date: Temporal.PlainDate) => date.toZonedDateTime(timeZone).epochMilliseconds;
  const date = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone).toPlainDate();
  let [first, next] = daysOf(per, startsOn, date);
  // Clocks that went back over midnight show the day before once more.
  while (atMs >= startOf(next)) [first, next] = daysOf(per, startsOn, next);
  return [startOf(first), startOf(next)];
}

const instant = fc.integer({ min: Date.UTC(1950, 0, 1), max: Date.UTC(2050, 0, 1) });

/** An instant near a change of the clocks, if the zone has one after it. */
function nearChange(zone: string, atMs: number, byMs: number): number {
  const next = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(zone).getTimeZoneTransition("next");
  return (next?.epochMilliseconds ?? atMs) + byMs;
}

const moments = fc
  .record({
    zone: fc.constantFrom(...zones),
    atMs: instant,
    byMs: fc.integer({ min: -100_000_000, max: 100_000_000 }),
    isNear: fc.boolean(),
  })
  .map(({ zone, atMs, byMs, isNear }) => ({ zone, atMs: isNear ? nearChange(zone, atMs, byMs) : atMs }));

describe("the windows of a calendar", () => {
  it("are those of Temporal: days, weeks, months and years, in every zone, over a century", () => {
    const unit = fc.oneof(
      fc.record({ per: fc.constantFrom("day" as const, "year") }),
      fc.record({ per: fc.constant("week" as const), startsOn: fc.constantFrom(...weekdays) }),
      fc.record({ per: fc.constant("month" as const), startsOn: fc.integer({ min: 1, max: 31 }) }),
    );
    fc.assert(
      fc.property(moments, unit, ({ zone, atMs }, options) => {
        const policy = calendarWindow({ limit: 1, timeZone: zone, ...options });
        const [before, start, end, after] = edgesOf(policy, atMs) as [number, number, number, number];
        expect([start, end]).toEqual(windowOf(policy, atMs));
        // A day that the zone left out is a window without time.
        if (before < start) expect(windowOf(policy, before)).toEqual([before, start]);
        if (end < after) expect(windowOf(policy, end)).toEqual([end, after]);
      }),
      runs(1500),
    );
  });

  it("of an hour begin when the clocks show a whole hour, or skip one", () => {
    const shown = (zone: string, ms: number) => Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone);
    const isWhole = ({ minute, second }: Temporal.ZonedDateTime) => minute === 0 && second === 0;
    const hourOf = (at: Temporal.ZonedDateTime) => at.toPlainDateTime().round({ smallestUnit: "hour", roundingMode: "floor" });
    fc.assert(
      fc.property(moments, ({ zone, atMs }) => {
        const [, start, end] = edgesOf(calendarWindow({ limit: 1, per: "hour", timeZone: zone }), atMs) as [number, number, number];
        expect(start).toBeLessThanOrEqual(atMs);
        expect(end).toBeGreaterThan(atMs);
        const skips = (ms: number) => Temporal.PlainDateTime.compare(hourOf(shown(zone, ms)), hourOf(shown(zone, ms - 1))) > 0;
        for (const edge of [start, end]) expect(isWhole(shown(zone, edge)) || skips(edge)).toBe(true);
        // No other edge lies between them.
        for (let ms = start + 60_000; ms < end; ms += 60_000) {
          const at = shown(zone, ms);
          if (isWhole(at)) throw new Error(`${at} is a whole hour within a window`);
        }
      }),
      runs(150),
    );
  });

  it("follow each other without a gap", () => {
    fc.assert(
      fc.property(moments, fc.constantFrom(...calendarUnits), ({ zone, atMs }, per) => {
        const policy = calendarWindow({ limit: 1, per, timeZone: zone });
        const [, , end, after] = edgesOf(policy, atMs) as [number, number, number, number];
        if (end === after) return;
        expect(edgesOf(policy, end).slice(0, 3)).toEqual(edgesOf(policy, atMs).slice(1));
      }),
      runs(300),
    );
  });

  it.each([
    ["a day of 23 hours", "Europe/Berlin", "day", "2026-03-29T12:00Z", 23],
    ["a day of 25 hours", "Europe/Berlin", "day", "2026-10-25T12:00Z", 25],
    ["a day without a midnight", "Africa/Cairo", "day", "2026-04-24T12:00Z", 23],
    ["a day with two midnights", "America/Havana", "day", "2026-11-01T12:00Z", 25],
    ["a leap year's February", "UTC", "month", "2028-02-10T12:00Z", 29 * 24],
    ["a month with a change of the clocks", "America/New_York", "month", "2026-03-10T12:00Z", 31 * 24 - 1],
  ] as const)("have the length of the calendar: %s", (_, timeZone, per, at, hours) => {
    const [, start, end] = edgesOf(calendarWindow({ limit: 1, per, timeZone }), Date.parse(at)) as [number, number, number];
    expect((end - start) / 3_600_000).toBe(hours);
  });
});

describe("calendarWindow", () => {
  const month = { limit: 10, per: "month" } as const;

  it("answers the same policy for the same options, so that a policy function may call it for each request", () => {
    expect(calendarWindow({ ...month, timeZone: "Asia/Tokyo" })).toBe(calendarWindow({ ...month, timeZone: "Asia/Tokyo" }));
  });

  it("counts zones, units and first days apart, but not other limits, and writes zones in any case", () => {
    const kind = (options: object) => calendarWindow({ ...month, ...options }).stateKind;
    expect(kind({ limit: 20, timeZone: "UTC", startsOn: 1 })).toBe(kind({}));
    expect(kind({ timeZone: "europe/berlin" })).toBe(kind({ timeZone: "Europe/Berlin" }));
    const kinds = [{}, { timeZone: "Europe/Berlin" }, { startsOn: 2 }, { per: "week" }, { per: "day" }].map(kind);
    expect(new Set(kinds).size).toBe(5);
  });

  it.each([
    [{ timeZone: "Europe/Berln" }, 'must be the name of an IANA time zone, but was "Europe/Berln". Write timeZone: "Europe/Berlin"'],
    [{ timeZone: "+02:00" }, "must be the name of an IANA time zone"],
    [{ timeZone: 2 }, "must be the name of an IANA time zone, but was 2"],
    [{ per: "quarter" }, '`per` must be one of "hour", "day", "week", "month", "year"'],
    [{ startsOn: 32 }, "Write startsOn: 31 for the last day of each month"],
    [{ startsOn: "monday" }, '`startsOn` must be a whole number of at least 1, but was "monday"'],
    [{ per: "week", startsOn: 1 }, '`startsOn` must be one of "monday", "tuesday"'],
    [{ per: "day", startsOn: 1 }, '`startsOn` is for weeks and months, but `per` is "day"'],
    [{ limit: -1 }, "`limit` must be a whole number"],
    [{ limit: Object.create(null) }, "`limit` must be a whole number"],
    [{ timeZone: Object.create(null) }, "must be the name of an IANA time zone, but was"],
  ])("refuses %j when it is made", (options, message) => {
    expect(() => calendarWindow({ ...month, ...options } as never)).toThrow(message);
  });
});
