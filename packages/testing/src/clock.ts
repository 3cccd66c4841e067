import { type Duration, FloodgateError, parseDuration } from "@floodgate/core";

/** A clock that stands still until you turn it. It is the option `clock` of a store: call it for milliseconds since the epoch. */
export interface TestClock {
  (): number;
  /**
   * Turns the clock forward: `clock.advance("1m")`.
   * @throws FloodgateError `FLOODGATE_INVALID_DURATION`.
   */
  advance(duration: Duration): void;
  /**
   * Sets the clock to a time, in milliseconds since the epoch or as a date: `clock.set(new Date("2030-06-01"))`. It may lie in the past.
   * @throws FloodgateError `FLOODGATE_INVALID_CLOCK`.
   */
  set(time: number | Date): void;
}

/**
 * Makes a clock for a store: `memoryStore({ clock })`, `redisStore(client, { clock })`.
 *
 *     const clock = testClock();
 *     const app = createApp(memoryStore({ clock }));
 *     clock.advance("1m");
 *
 * @param start milliseconds since the epoch, or a date. Default: 2030-01-01 in UTC, where windows of up to a day begin.
 */
export function testClock(start: number | Date = Date.UTC(2030, 0, 1)): TestClock {
  let nowMs = msOf(start);
  return Object.assign(() => nowMs, {
    advance(duration: Duration) {
      nowMs += parseDuration(duration);
    },
    set(time: number | Date) {
      nowMs = msOf(time);
    },
  });
}

function msOf(time: number | Date): number {
  const ms = Number(time);
  if (Number.isFinite(ms)) return ms;
  throw new FloodgateError(
    "FLOODGATE_INVALID_CLOCK",
    `testClock: a time must be a Date, or milliseconds since the epoch, but was ${JSON.stringify(time)}. Write new Date("2030-01-01").`,
  );
}
