import { FloodgateError, type Policy } from "@floodgate/core";
import { type AlgorithmDefinition, algorithms, toPolicy } from "@floodgate/core/rules";
import { gridLimits } from "./limits.js";

type Options = { readonly [option: string]: string | number | boolean };

/** The option of each algorithm that is its limit: the most units at once, at the policy's own rate. */
const limitOptions = {
  "fixed-window": "limit",
  "sliding-window-log": "limit",
  "sliding-window-counter": "limit",
  "token-bucket": "capacity",
  "leaky-bucket": "capacity",
  gcra: "burst",
} as const satisfies Readonly<Record<Policy["algorithm"], string>>;

export function limitOption({ algorithm }: Policy): string {
  return limitOptions[algorithm];
}

/** A policy as a rules file writes it. */
export function optionsOf(policy: Policy): Options {
  const { optionsOf } = algorithms[policy.algorithm] as unknown as AlgorithmDefinition<Policy, Record<string, unknown>>;
  const own = Object.entries(optionsOf(policy)).filter(([, value]) => value !== undefined) as [string, string | number][];
  return { algorithm: policy.algorithm, ...Object.fromEntries(own.map(([name, value]) => [name, inLargeUnits(value)])) };
}

/** `60000ms` is `1m`. */
function inLargeUnits<T>(value: T): T | string {
  const [, digits] = /^(\d+)ms$/.exec(String(value)) ?? [];
  if (digits === undefined) return value;
  const ms = Number(digits);
  const [unit, length] = units.find(([, length]) => ms % length === 0) as (typeof units)[number];
  return `${ms / length}${unit}`;
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/** The same policy with another limit; undefined if that would be too large for it. */
export function withLimit(policy: Policy, limit: number): Policy | undefined {
  try {
    return toPolicy("report", { ...optionsOf(policy), [limitOption(policy)]: limit });
  } catch (error) {
    if (error instanceof FloodgateError) return undefined;
    throw error;
  }
}

/** The same policy with a limit that hardly any client reaches. */
export function unlimited(policy: Policy): Policy {
  for (let limit = 2 ** 30; limit > policy.quota; limit = Math.floor(limit / 2)) {
    const larger = withLimit(policy, limit);
    if (larger !== undefined) return larger;
  }
  return policy;
}

/**
 * The policy under the limits of a grid, the lowest first; the policy itself among them.
 * @param descending what the clients need, the greatest first; at least one.
 * @param count about how many.
 * @param cost what each request costs, if the rule says so: a lower limit is refused.
 */
export function policiesOf(policy: Policy, descending: Float64Array, count: number, cost: number): Policy[] {
  const limits = gridLimits(descending, policy.quota, count, Math.max(1, cost));
  return limits.flatMap((limit) => (limit === policy.quota ? policy : (withLimit(policy, limit) ?? [])));
}
