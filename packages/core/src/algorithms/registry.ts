import { atPath, conflict, FloodgateError, shown, wrongOption } from "../support/errors.js";
import { getOrMake } from "../support/maps.js";
import { oneOf } from "../support/options.js";
import { type Algorithm, type AlgorithmDefinition, loadedAlgorithms } from "./algorithm.js";
import type { calendarWindowDefinition } from "./calendar-window.js";
import type { concurrencyDefinition } from "./concurrency.js";
import type { fixedWindowDefinition } from "./fixed-window.js";
import type { gcraDefinition } from "./gcra.js";
import type { leakyBucketDefinition } from "./leaky-bucket.js";
import type { slidingWindowCounterDefinition } from "./sliding-window-counter.js";
import type { slidingWindowLogDefinition } from "./sliding-window-log.js";
import type { tokenBucketDefinition } from "./token-bucket.js";
import { withHolds } from "./with-holds.js";

/** All algorithms, by their names in a rules file. */
export interface Algorithms {
  readonly "fixed-window": typeof fixedWindowDefinition;
  readonly "sliding-window-log": typeof slidingWindowLogDefinition;
  readonly "sliding-window-counter": typeof slidingWindowCounterDefinition;
  readonly "token-bucket": typeof tokenBucketDefinition;
  readonly "leaky-bucket": typeof leakyBucketDefinition;
  readonly gcra: typeof gcraDefinition;
  readonly "calendar-window": typeof calendarWindowDefinition;
  readonly concurrency: typeof concurrencyDefinition;
}

export type AlgorithmName = keyof Algorithms;

/** An algorithm with its parameters: plain frozen data that a factory made. */
export type Policy = ReturnType<Algorithms[AlgorithmName]["make"]>;

/** A policy as a rules file writes it: the name of the algorithm and the options of its factory. */
export type PolicyOptions = { [Name in AlgorithmName]: { algorithm: Name } & Parameters<Algorithms[Name]["make"]>[0] }[AlgorithmName];

type AnyOptions = Record<string, unknown>;

const names = "fixed-window sliding-window-log sliding-window-counter token-bucket leaky-bucket gcra calendar-window concurrency".split(
  " ",
) as AlgorithmName[];

const factoryOf = (algorithm: string): string => algorithm.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());

/** @throws FloodgateError `FLOODGATE_UNKNOWN_ALGORITHM` if a bundle has left the algorithm out. */
export function definitionOf({ algorithm }: Pick<Policy, "algorithm">): AlgorithmDefinition<Policy, AnyOptions> {
  const definition = loadedAlgorithms.get(algorithm);
  if (definition !== undefined) return definition;
  throw new FloodgateError(
    "FLOODGATE_UNKNOWN_ALGORITHM",
    `policy: the algorithm ${shown(algorithm)} is not in this bundle, because nothing imports ${factoryOf(algorithm)}. Write policy: ${factoryOf(algorithm)}({ ... }).`,
  );
}

/** The policies that were converted, by what they were made of. */
const converted = new WeakMap<object, Policy>();

/**
 * Converts a value to a policy: a policy that a factory made, or its options with the name of the algorithm.
 * @param all the algorithms that it may name. Default: those that are loaded.
 * @throws FloodgateError `FLOODGATE_NO_POLICY` if the value is neither, `FLOODGATE_UNKNOWN_ALGORITHM`, or the error of an invalid option.
 */
export function toPolicy(where: string, value: unknown, all?: Algorithms): Policy {
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
  const known = converted.get(value);
  if (known !== undefined) return known;
  const policy = isPolicy(value) ? value : fromOptions(where, value as { algorithm?: unknown }, all);
  converted.set(value, policy);
  return policy;
}

/** The name of a policy factory; undefined for anything else. */
export function factoryName(value: unknown): string | undefined {
  for (const [algorithm, { make }] of loadedAlgorithms) if (make === value) return factoryOf(algorithm);
  return undefined;
}

/** Only factories make frozen objects with a span. */
function isPolicy(value: object): value is Policy {
  return Object.isFrozen(value) && "spanMs" in value && "algorithm" in value;
}

function fromOptions(where: string, options: { algorithm?: unknown }, all: Algorithms | undefined): Policy {
  const algorithm = oneOf(where, "algorithm", options.algorithm, names, "FLOODGATE_UNKNOWN_ALGORITHM");
  const { algorithm: _, ...rest } = options;
  return atPath(
    [],
    () => ((all?.[algorithm] as ReturnType<typeof definitionOf> | undefined) ?? definitionOf({ algorithm })).make(rest),
    where,
  );
}

export function algorithmOf(policy: Policy): Algorithm<Policy> {
  const { algorithms, algorithmOf } = definitionOf(policy);
  const own = algorithmOf === undefined ? algorithms[0] : algorithmOf(policy);
  return policy.holdMs === undefined || own.renew !== undefined ? own : withHolds(own);
}

/** Whether a policy counts requests in flight, whose units are given back when they end. */
export function hasSlots({ algorithm }: Pick<Policy, "algorithm">): boolean {
  return algorithm === "concurrency";
}

const held = new WeakMap<Policy, Map<number, Policy>>();

/**
 * The same policy, whose units are held for `holdMs` at most until their real cost is settled. Without a time, the policy itself.
 * @throws FloodgateError `FLOODGATE_CONFLICTING_OPTIONS` for a policy whose units cannot be held.
 */
export function heldPolicy(where: string, policy: Policy, holdMs: number | undefined): Policy {
  if (holdMs === undefined || policy.holdMs === holdMs) return policy;
  const { delays, countsRejected, renew } = algorithmOf(policy);
  const why =
    renew !== undefined
      ? 'concurrency has a `hold` of its own. Write policy: concurrency({ limit: 10, hold: "30s" })'
      : delays
        ? "a leakyBucket gives each request its place in the queue. Use another policy"
        : countsRejected?.(policy)
          ? "`countRejected` counts requests that are rejected. Leave one of the two out"
          : undefined;
  if (why !== undefined) {
    throw conflict(`${where}: \`hold\` sets units aside until the real cost is known, but ${why}.`, ["hold"]);
  }
  const ofPolicy = getOrMake(held, policy, () => new Map<number, Policy>());
  return getOrMake(ofPolicy, holdMs, () => Object.freeze({ ...policy, holdMs, stateKind: `${policy.stateKind} held ${holdMs}` }));
}

/**
 * Why units of a policy can never be leased; undefined if they can. A queue gives each request its own delay, and a log with `countRejected`
 * must see each rejection.
 */
export function whyNoLease(policy: Policy): string | undefined {
  const { delays, countsRejected } = algorithmOf(policy);
  if (policy.holdMs !== undefined) return "units that come back are to be had by every process at once";
  if (delays) return "a leakyBucket gives each request its place in the queue";
  return countsRejected?.(policy) ? "`countRejected` must see each rejected request" : undefined;
}

/** Checks the option `lease` of a limit. @throws FloodgateError if it is not a boolean, or is true for a policy whose units cannot be leased. */
export function checkLease(where: string, lease: unknown, limits: readonly { readonly policy: Policy }[]): void {
  if (lease === undefined || lease === false) return;
  if (lease !== true) {
    const write = "lease: true. How long a lease lives is an option of the store: redisStore(redis, { lease: { lifeMs: 200 } })";
    throw wrongOption(where, "lease", "true or false", lease, write);
  }
  const why = limits.map(({ policy }) => whyNoLease(policy)).find((reason) => reason !== undefined);
  if (why === undefined) return;
  throw conflict(`${where}: \`lease: true\` takes units ahead of requests, but ${why}. Leave \`lease\` out, or use another policy.`, [
    "lease",
  ]);
}

/** The options that make the same policy, without those that have their default. */
export function optionsOf(policy: Policy): { readonly algorithm: AlgorithmName; readonly [option: string]: unknown } {
  return { algorithm: policy.algorithm, ...definitionOf(policy).optionsOf(policy) };
}

/**
 * The policy for each of several processes that count apart. Counts are rounded down, so the processes together never exceed the policy, but
 * each process gets at least one unit. Rates are divided exactly.
 * @throws FloodgateError if a time multiplied by `processes` is longer than a duration can be.
 */
export function shareOf(policy: Policy, processes: number): Policy {
  const part = (units: number): number => Math.max(1, Math.floor(units / processes));
  const { make, optionsOf, share: shareIn } = definitionOf(policy);
  const share = make({ ...optionsOf(policy), ...(shareIn?.(policy, part, processes) ?? { limit: part(policy.quota) }) });
  return heldPolicy("share", share, policy.holdMs);
}
