import { beforeEach } from "vitest";

/** An edge of every window. */
const dayMs = 86_400_000;
/** How many times a test may read the clock before midnight; then midnight comes. */
const readings = Number(process.env["FLOODGATE_EDGE"] ?? 2);

/**
 * Each test runs across midnight: the clock stands a millisecond before it for the first few readings. So a test that needs its
 * requests in one window fails always, not once in a thousand runs. Such a test holds the clock: `vi.useFakeTimers`.
 */
const clock = Date as { realNow?: () => number };
// Files of one thread run this one after the other, and each would add a day to the clock of the last.
clock.realNow ??= Date.now;
const { realNow } = clock;
// Over an hour ahead. A run across real midnight would fall behind the clocks of its servers: each test begins at midnight again.
const midnightMs = Math.ceil((realNow() + 3_600_000) / dayMs) * dayMs;
let left = readings;
let crossedMs = 0;

Date.now = () => {
  if (left > 0) return midnightMs - left--;
  if (left === 0) {
    left = -1;
    crossedMs = realNow();
  }
  return midnightMs + realNow() - crossedMs;
};

beforeEach(() => {
  left = readings;
});
