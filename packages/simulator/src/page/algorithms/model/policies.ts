import {
  type Duration,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { type AlgorithmDefinition, algorithms, formatDuration } from "@floodgate/core/rules";

export type LaneName =
  | "fixed-window"
  | "sliding-window-log"
  | "sliding-window-counter"
  | "sliding-window-counter-strict"
  | "token-bucket"
  | "token-bucket-interval"
  | "gcra"
  | "leaky-bucket";

/** A policy of each algorithm for the same limit in the same window, as alike as they can be. By the names of their lanes. */
export function policiesFor(limit: number, windowMs: number): Readonly<Record<LaneName, Policy>> {
  const window: Duration = `${BigInt(windowMs)}ms`;
  const fifth: Duration = `${BigInt(windowMs / 5)}ms`;
  const part = Math.max(1, Math.ceil(limit / 5));
  return {
    "fixed-window": fixedWindow({ limit, window }),
    "sliding-window-log": slidingWindowLog({ limit, window }),
    "sliding-window-counter": slidingWindowCounter({ limit, window }),
    "sliding-window-counter-strict": slidingWindowCounter({ limit, window, buckets: 5, strict: true }),
    "token-bucket": tokenBucket({ capacity: limit, refill: limit, every: window }),
    "token-bucket-interval": tokenBucket({ capacity: limit, refill: part, every: fifth, style: "interval" }),
    gcra: gcra({ limit, window, burst: part }),
    "leaky-bucket": leakyBucket({ capacity: limit, leak: limit, every: window }),
  };
}

type Definition = AlgorithmDefinition<Policy, Record<string, unknown>>;

/** How an algorithm is described to users: its options and their words. */
export function definitionOf(policy: Policy): Definition {
  return algorithms[policy.algorithm] as unknown as Definition;
}

/** The options of a policy as a person writes them; those that have their default are left out. */
export function optionTexts(policy: Policy): Record<string, string> {
  const { options, optionsOf } = definitionOf(policy);
  const texts = Object.entries(optionsOf(policy)).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    texts.map(([name, value]) => [name, options[name]?.type === "duration" ? durationOf(String(value)) : String(value)]),
  );
}

/** `60000ms` as `1m`. One unit only, as options are written. */
export function durationOf(text: string): string {
  const ms = Number(/^(\d+)ms$/.exec(text)?.[1]);
  if (Number.isNaN(ms)) return text;
  const words = formatDuration(ms);
  if (!words.includes(" ")) return words;
  return ms % 60_000 === 0 ? `${ms / 60_000}m` : ms % 1000 === 0 ? `${ms / 1000}s` : text;
}

/** A policy as the command line reads it, without its algorithm: `limit=10 window=10s`. */
export function policyText(policy: Policy): string {
  return Object.entries(optionTexts(policy))
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}
