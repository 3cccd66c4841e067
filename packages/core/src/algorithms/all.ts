import type { Algorithm } from "./algorithm.js";
import { calendarWindowDefinition } from "./calendar-window.js";
import { concurrencyDefinition } from "./concurrency.js";
import { fixedWindowDefinition } from "./fixed-window.js";
import { gcraDefinition } from "./gcra.js";
import { leakyBucketDefinition } from "./leaky-bucket.js";
import { type Algorithms, toPolicy as convert, type Policy } from "./registry.js";
import { slidingWindowCounterDefinition } from "./sliding-window-counter.js";
import { slidingWindowLogDefinition } from "./sliding-window-log.js";
import { tokenBucketDefinition } from "./token-bucket.js";

/** All algorithms, by their names in a rules file. */
export const algorithms: Algorithms = {
  "fixed-window": fixedWindowDefinition,
  "sliding-window-log": slidingWindowLogDefinition,
  "sliding-window-counter": slidingWindowCounterDefinition,
  "token-bucket": tokenBucketDefinition,
  "leaky-bucket": leakyBucketDefinition,
  gcra: gcraDefinition,
  "calendar-window": calendarWindowDefinition,
  concurrency: concurrencyDefinition,
};

/** All algorithms that decide policies, each once. */
export function allAlgorithms(): Algorithm<Policy>[] {
  const definitions: readonly { readonly algorithms: readonly unknown[] }[] = Object.values(algorithms);
  return [...new Set(definitions.flatMap(({ algorithms }) => algorithms as Algorithm<Policy>[]))];
}

/** As `toPolicy` of the registry. A bundle with this function has all algorithms, so a text may name any of them. */
export function toPolicy(where: string, value: unknown): Policy {
  return convert(where, value, algorithms);
}
