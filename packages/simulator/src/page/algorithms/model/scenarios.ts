/** Requests to play. Times are in milliseconds from the start, which is the start of a window. */
export interface Scenario {
  readonly title: string;
  /** What it is, for a limit in words: `10 in 10s`. */
  readonly text: (limit: number, window: string) => string;
  readonly times: (limit: number, windowMs: number, seed: number) => number[];
}

/** How many windows the timeline shows. */
export const windowsShown = 3;

export type ScenarioName = "edge" | "gap" | "burst" | "steady" | "drip" | "random" | "none";

export const scenarios: Readonly<Record<ScenarioName, Scenario>> = {
  edge: {
    title: "Edge of a window",
    text: (limit, window) =>
      `${limit} requests just before the fixed window ends, and ${limit} just after. Each of its windows has its ${limit}, but ${2 * limit} pass within ${window}.`,
    times: (limit, windowMs) => [
      ...spread(limit, 0.95 * windowMs, 0.05 * windowMs),
      ...spread(limit, windowMs, 0.05 * windowMs),
      ...spread(limit, 1.5 * windowMs, 0.05 * windowMs),
    ],
  },
  gap: {
    title: "Two timed bursts",
    text: (limit, window) =>
      `${limit} requests at the end of a window, and ${limit} more just before the next one ends. The sliding counter believes that the first ones were spread over their window, so it lets nearly ${2 * limit} through within ${window}.`,
    times: (limit, windowMs) => [...spread(limit, 0.99 * windowMs, 0.01 * windowMs), ...spread(limit, 1.98 * windowMs, 0.01 * windowMs)],
  },
  burst: {
    title: "Burst",
    text: (limit) =>
      `${Math.ceil(1.5 * limit)} requests at once, twice. What has come back by the second burst differs: all of it, a part, or nothing.`,
    times: (limit, windowMs) => [
      ...spread(Math.ceil(1.5 * limit), 0.3 * windowMs, 0.03 * windowMs),
      ...spread(Math.ceil(1.5 * limit), 0.9 * windowMs, 0.03 * windowMs),
    ],
  },
  steady: {
    title: "Steady stream",
    text: (limit, window) =>
      `A client that sends evenly, a quarter more than ${limit} per ${window}. Buckets reject single requests; windows reject the last ones.`,
    times: (limit, windowMs) => spread(Math.ceil(2.7 * 1.25 * limit), 0.1 * windowMs, 2.7 * windowMs),
  },
  drip: {
    title: "Slow drip",
    text: (limit, window) => `A client that sends half of ${limit} per ${window}, evenly. Every algorithm lets all of it through.`,
    times: (limit, windowMs) => spread(Math.ceil(2.7 * 0.5 * limit), 0.1 * windowMs, 2.7 * windowMs),
  },
  random: {
    title: "Random",
    text: (limit, window) =>
      `People who click when they like (a Poisson process): on average ${limit} per ${window}, the limit itself. Chance makes bursts and gaps.`,
    times: poisson,
  },
  none: {
    title: "Your own",
    text: () => "No requests but yours. Click on a lane to send one at that moment, or press Play and then Send.",
    times: () => [],
  },
};

/** Requests at even distances, in whole milliseconds. */
function spread(count: number, fromMs: number, lengthMs: number): number[] {
  return Array.from({ length: count }, (_, i) => Math.floor(fromMs + (i * lengthMs) / count));
}

/** Requests that know nothing of each other: the times between them are exponentially distributed. */
function poisson(limit: number, windowMs: number, seed: number): number[] {
  const random = mulberry32(seed);
  const times: number[] = [];
  for (let atMs = 0; ; ) {
    atMs += (-Math.log(1 - random()) * windowMs) / limit;
    if (atMs >= 2.8 * windowMs) return times;
    times.push(Math.floor(atMs));
  }
}

/** A small generator of numbers from 0 to 1, the same for the same seed. Source: Tommy Ettinger, public domain. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
