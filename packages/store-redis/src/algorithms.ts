import type { LeakyBucketPolicy, Policy } from "@floodgate/core";
import { algorithms } from "./script.js";

/** What the script is told of a policy: the number of its algorithm, and its parameters. */
export interface AlgorithmArguments {
  readonly number: number;
  readonly parameters: readonly string[];
}

/** A policy as the script takes it. The parameters are told in the head of each file in lua/. */
export function argumentsOf(policy: Policy): AlgorithmArguments {
  switch (policy.algorithm) {
    case "fixed-window":
      return made("fixed-window", policy.limit, policy.windowMs);
    case "sliding-window-counter":
      if (policy.buckets === 1) return made("two-counters", policy.limit, policy.windowMs);
      return made("sliding-window-counter", policy.limit, policy.windowMs, policy.buckets);
    case "sliding-window-log":
      return made("sliding-window-log", policy.limit, policy.windowMs, policy.countRejected ? 1 : 0);
    case "token-bucket":
      if (policy.style === "interval") return made("interval-bucket", policy.capacity, policy.refill, policy.everyMs);
      return made("smooth-bucket", policy.quota, policy.unit, policy.flow, policy.divisor);
    case "gcra":
      return made("smooth-bucket", policy.quota, policy.unit, policy.flow, policy.divisor);
    case "leaky-bucket":
      return made("leaky-bucket", policy.capacity, policy.unit, policy.flow, policy.divisor, longestOf(policy));
  }
}

function longestOf({ maxDelayMs }: LeakyBucketPolicy): number {
  return Number.isFinite(maxDelayMs) ? maxDelayMs : -1;
}

function made(twin: (typeof algorithms)[number], ...parameters: readonly number[]): AlgorithmArguments {
  return { number: algorithms.indexOf(twin) + 1, parameters: parameters.map(String) };
}

/** A policy's `stateKind` as it stands in a key, its words cut to their initials: `swc-60000-1`. No two kinds share one. */
export function kindOf({ stateKind }: Policy): string {
  return stateKind.replace(/([a-z])[a-z]*-?/g, "$1").replaceAll(" ", "-");
}
