import { FloodgateError, type Policy } from "@floodgate/core";
import { type AlgorithmDefinition, algorithms, toPolicy } from "@floodgate/core/rules";

/**
 * The algorithms with a rate. A text can state it, and a log can suggest it. A calendar window has a quota instead of a rate. Concurrency
 * needs the end of each request, which a log does not have.
 */
export type AlgorithmName = Exclude<Policy["algorithm"], "calendar-window" | "concurrency">;

export const algorithmNames: readonly AlgorithmName[] = [
  ...(["fixed-window", "sliding-window-counter", "sliding-window-log"] as const),
  ...(["token-bucket", "leaky-bucket", "gcra"] as const),
];

/** The options of a policy as a rules file writes them. */
export function optionsOf(policy: Policy): Record<string, string | number | boolean> {
  const { optionsOf } = algorithms[policy.algorithm] as unknown as AlgorithmDefinition<Policy, Record<string, unknown>>;
  const own = Object.entries(optionsOf(policy)).filter(([, value]) => value !== undefined);
  return Object.fromEntries(own.map(([name, value]) => [name, inLargeUnits(value as string | number | boolean)]));
}

/** Whether an algorithm counts in windows. The others have a capacity and flow at a rate. */
export function isWindow(algorithm: Policy["algorithm"]): boolean {
  return /window/.test(algorithm);
}

/** The options of an algorithm for a limit: the most units at once. Buckets flow at a rate, which other algorithms do not have. */
export function optionsFor(algorithm: AlgorithmName, limit: number, rate: number, window: string): Record<string, number | string> {
  switch (algorithm) {
    case "token-bucket":
      return { capacity: limit, refill: rate, every: window };
    case "leaky-bucket":
      return { capacity: limit, leak: rate, every: window };
    case "gcra":
      return { limit: rate, window, burst: limit };
    default:
      return { limit, window };
  }
}

const units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** `60000ms` is `1m`. In one unit, as options are written. */
export function inLargeUnits<T>(value: T): T | string {
  const [, digits] = /^(\d+)ms$/.exec(String(value)) ?? [];
  const ms = Number(digits);
  const unit = Object.entries(units).find(([, length]) => ms % length === 0);
  return unit === undefined ? value : `${ms / unit[1]}${unit[0]}`;
}

/** The option that is a policy's limit: the most units at once, at its own rate. */
export function limitOption({ algorithm }: Policy): string {
  return algorithm === "concurrency" || isWindow(algorithm) ? "limit" : algorithm === "gcra" ? "burst" : "capacity";
}

/** A policy as a rules file has it: the name of its algorithm, and its options. */
export interface PolicyWords {
  readonly [option: string]: string | number | boolean;
}

export function policyWords(policy: Policy): PolicyWords {
  return { algorithm: policy.algorithm, ...optionsOf(policy) };
}

/** A policy; undefined if an algorithm cannot have these numbers. */
export function policyOrNone(options: object): Policy | undefined {
  try {
    return toPolicy("report", options);
  } catch (error) {
    if (error instanceof FloodgateError) return undefined;
    throw error;
  }
}

/** The same policy with another limit; undefined if that would be too large for it. */
export function withLimit(policy: Policy, limit: number): Policy | undefined {
  return policyOrNone({ ...policyWords(policy), [limitOption(policy)]: limit });
}
