import { durationText } from "../support/duration.js";
import { FloodgateError, shown } from "../support/errors.js";
import { oneOf } from "../support/options.js";
import { type FixedWindowPolicy, fixedWindow } from "./fixed-window.js";
import { burstOption, type GcraPolicy, gcra } from "./gcra.js";
import { type LeakyBucketPolicy, leakyBucket } from "./leaky-bucket.js";
import { type SlidingWindowCounterPolicy, slidingWindowCounter } from "./sliding-window-counter.js";
import { type SlidingWindowLogPolicy, slidingWindowLog } from "./sliding-window-log.js";
import { type TokenBucketPolicy, tokenBucket } from "./token-bucket.js";

/** An algorithm with its parameters: plain frozen data, made by one of the six factories. */
export type Policy =
  | FixedWindowPolicy
  | SlidingWindowLogPolicy
  | SlidingWindowCounterPolicy
  | TokenBucketPolicy
  | LeakyBucketPolicy
  | GcraPolicy;

type Options<Factory extends (options: never) => Policy> = Parameters<Factory>[0];

/** A policy as a rules file writes it: the algorithm's name beside the options of its factory. */
export type PolicyOptions =
  | ({ algorithm: "fixed-window" } & Options<typeof fixedWindow>)
  | ({ algorithm: "sliding-window-log" } & Options<typeof slidingWindowLog>)
  | ({ algorithm: "sliding-window-counter" } & Options<typeof slidingWindowCounter>)
  | ({ algorithm: "token-bucket" } & Options<typeof tokenBucket>)
  | ({ algorithm: "leaky-bucket" } & Options<typeof leakyBucket>)
  | ({ algorithm: "gcra" } & Options<typeof gcra>);

const factories: Readonly<Record<Policy["algorithm"], (options: never) => Policy>> = {
  "fixed-window": fixedWindow,
  "sliding-window-log": slidingWindowLog,
  "sliding-window-counter": slidingWindowCounter,
  "token-bucket": tokenBucket,
  "leaky-bucket": leakyBucket,
  gcra,
};

const made = new WeakMap<object, Policy>();

/**
 * The policy that a value stands for: one made by a factory, or its options with the algorithm's name.
 * @throws FloodgateError with the code of what is wrong.
 */
export function toPolicy(where: string, value: unknown): Policy {
  const uncalled = factoryName(value);
  if (uncalled !== undefined) {
    throw new FloodgateError(
      "FLOODGATE_NO_POLICY",
      `${where}: \`policy\` is ${uncalled} itself, not what it makes. Call it: policy: ${uncalled}({ ... }).`,
    );
  }
  if (typeof value !== "object" || value === null) {
    throw new FloodgateError(
      "FLOODGATE_NO_POLICY",
      `${where}: a policy was expected, but there was ${shown(value)}. Write fixedWindow({ limit: 100, window: "1m" }), say; a policy function must answer one for every request.`,
    );
  }
  const known = made.get(value);
  if (known !== undefined) return known;
  const policy = isPolicy(value) ? value : fromOptions(where, value as { algorithm?: unknown });
  made.set(value, policy);
  return policy;
}

/** The name of a policy factory; undefined for anything else. */
export function factoryName(value: unknown): string | undefined {
  const algorithm = Object.entries(factories).find(([, factory]) => factory === value)?.[0];
  return algorithm?.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Factories freeze what they make and give it a span; nothing else has one. */
function isPolicy(value: object): value is Policy {
  return Object.isFrozen(value) && "spanMs" in value && "algorithm" in value;
}

function fromOptions(where: string, options: { algorithm?: unknown }): Policy {
  const names = Object.keys(factories) as Policy["algorithm"][];
  const algorithm = oneOf(where, "algorithm", options.algorithm, names, "FLOODGATE_UNKNOWN_ALGORITHM");
  const { algorithm: _, ...rest } = options;
  return factories[algorithm](rest as never);
}

/** The options that make a policy anew: all there are, undefined where one is left to its default. */
export function optionsOf(policy: Policy): { readonly algorithm: Policy["algorithm"]; readonly [option: string]: unknown } {
  const { algorithm } = policy;
  switch (algorithm) {
    case "fixed-window":
      return { algorithm, limit: policy.limit, window: durationText(policy.windowMs) };
    case "sliding-window-log":
      return { algorithm, limit: policy.limit, window: durationText(policy.windowMs), countRejected: policy.countRejected };
    case "sliding-window-counter":
      return { algorithm, limit: policy.limit, window: durationText(policy.windowMs), buckets: policy.buckets };
    case "gcra":
      return { algorithm, limit: policy.limit, window: durationText(policy.windowMs), burst: burstOption(policy) };
    case "token-bucket":
      return { algorithm, capacity: policy.capacity, refill: policy.refill, every: durationText(policy.everyMs), style: policy.style };
    case "leaky-bucket": {
      const maxDelayMs = policy.maxDelayMs === Number.POSITIVE_INFINITY ? undefined : policy.maxDelayMs;
      return { algorithm, capacity: policy.capacity, leak: policy.leak, every: durationText(policy.everyMs), maxDelayMs };
    }
  }
}
