import type { LeakyBucketPolicy, Policy } from "@floodgate/core";
import { algorithms } from "./script.js";

/** A policy as script arguments: its algorithm's number and its parameters. */
export interface AlgorithmArguments {
  readonly number: number;
  readonly parameters: readonly string[];
}

/** Converts a policy to script arguments. The header of each file in lua/ lists the parameters. */
export function argumentsOf(policy: Policy): AlgorithmArguments {
  switch (policy.algorithm) {
    case "fixed-window":
      return withNumber("fixed-window", policy.limit, policy.windowMs);
    case "sliding-window-counter":
      if (policy.buckets === 1) return withNumber("two-counters", policy.limit, policy.windowMs);
      return withNumber("sliding-window-counter", policy.limit, policy.windowMs, policy.buckets);
    case "sliding-window-log":
      return withNumber("sliding-window-log", policy.limit, policy.windowMs, policy.countRejected ? 1 : 0);
    case "token-bucket":
      if (policy.style === "interval") return withNumber("interval-bucket", policy.capacity, policy.refill, policy.everyMs);
      return withNumber("smooth-bucket", policy.quota, policy.unit, policy.flow, policy.divisor);
    case "gcra":
      return withNumber("smooth-bucket", policy.quota, policy.unit, policy.flow, policy.divisor);
    case "leaky-bucket":
      return withNumber("leaky-bucket", policy.capacity, policy.unit, policy.flow, policy.divisor, longestOf(policy));
  }
}

function longestOf({ maxDelayMs }: LeakyBucketPolicy): number {
  return Number.isFinite(maxDelayMs) ? maxDelayMs : -1;
}

function withNumber(twin: (typeof algorithms)[number], ...parameters: readonly number[]): AlgorithmArguments {
  return { number: algorithms.indexOf(twin) + 1, parameters: parameters.map(String) };
}

/** A policy's `stateKind` as it appears in keys, its words cut to initials: `swc-60000-1`. Unique for each kind. */
export function kindOf({ stateKind }: Policy): string {
  return stateKind.replace(/([a-z])[a-z]*-?/g, "$1").replaceAll(" ", "-");
}
