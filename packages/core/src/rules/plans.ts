import { definitionOf, factoryName, optionsOf, type Policy, type PolicyOptions, toPolicy } from "../algorithms/registry.js";
import { slidingWindowCounter } from "../algorithms/sliding-window-counter.js";
import type { Limit } from "../decide/decision.js";
import type { Key } from "../limits/key.js";
import type { Duration } from "../support/duration.js";
import { atPath, conflict, FloodgateError, invalidOption, shown } from "../support/errors.js";
import { checkOptions } from "../support/options.js";

type AnyOptions<Options = PolicyOptions> = Options extends unknown ? keyof Options : never;
type ValueOf<Option extends PropertyKey, Options = PolicyOptions> = Options extends { [Name in Option]?: infer Value } ? Value : never;
type NumberOf<Option extends PropertyKey> = [ValueOf<Option>] extends [Duration | undefined] ? Option : never;
type NumberOptions<Option extends PropertyKey = AnyOptions> = Option extends unknown ? NumberOf<Option> : never;

/** The numbers and durations of a policy that a plan may override. Those that it leaves out are the rule's own. */
export type PlanNumbers = { readonly [Option in NumberOptions]?: ValueOf<Option> };

/** A plan: other numbers for the rule's policy, or a policy of its own. */
export type PlanOptions = PlanNumbers | Policy | PolicyOptions;

const planExample = "plans: { pro: { limit: 1000 } }";

/**
 * Compiles the policy of each plan: its own, or the rule's with other numbers.
 * @throws FloodgateError if a plan's numbers do not fit the policy, or are invalid.
 */
export function compilePlans(where: string, plans: Readonly<Record<string, unknown>>, base: Policy): Map<string, Policy> {
  if (typeof plans !== "object" || plans === null || Array.isArray(plans) || Object.keys(plans).length === 0) {
    throw invalidOption(`${where}: \`plans\` must name the plans whose numbers differ, but was ${shown(plans)}. Write ${planExample}.`);
  }
  const baseOptions = optionsOf(base);
  const { numbers } = definitionOf(base);
  const compile = (name: string, plan: unknown): Policy => {
    const place = `${where}: plans.${name}`;
    const given = Object(plan) as object;
    if ("algorithm" in given) return toPolicy(place, plan);
    if ("policy" in given) throw invalidOption(`${place} is a policy itself. Write ${name}: fixedWindow({ ... }).`, ["policy"]);
    checkOptions(place, plan, numbers, planExample);
    return toPolicy(place, { ...baseOptions, ...(plan as PlanNumbers) });
  };
  return new Map(Object.entries(plans).map(([name, plan]) => [name, atPath([name], () => compile(name, plan))]));
}

/**
 * The policy of a rule, or of a middleware with a single limit: its `policy`, or its `limit` and `window`.
 * @throws FloodgateError if both or neither is given, or if one is invalid.
 */
export function policyOption<Req>(
  where: string,
  rule: { readonly policy?: unknown; readonly limit?: number; readonly window?: Duration },
): Policy | ((request: Req) => unknown) {
  const { policy, limit, window } = rule;
  if (policy !== undefined) {
    if (limit !== undefined || window !== undefined) {
      const message = `${where}: \`limit\` and \`window\` are short for a policy, so they cannot stand beside \`policy\`. Give one of the two.`;
      throw conflict(message, [limit === undefined ? "window" : "limit"]);
    }
    return typeof policy === "function" && factoryName(policy) === undefined
      ? (policy as (request: Req) => unknown)
      : atPath(["policy"], () => toPolicy(where, policy));
  }
  if (typeof limit === "function") {
    const message = `${where}: \`limit\` must be a number, but was a function. Write plans, or policy: (request) => slidingWindowCounter({ limit: ..., window: "1m" }).`;
    throw invalidOption(message, ["limit"]);
  }
  if (limit === undefined || window === undefined) {
    const given =
      limit !== undefined ? "`limit` but no `window`" : window !== undefined ? "`window` but no `limit`" : "neither `limit` nor `window`";
    const message = `${where}: a limit is needed, but there was ${given}. Write { limit: 100, window: "1m" }, or a \`policy\`.`;
    throw new FloodgateError("FLOODGATE_MISSING_LIMIT", message);
  }
  return atPath([], () => slidingWindowCounter({ limit, window }), where);
}

/** Gives one key of a rule another plan for a time. */
export interface Grant {
  /** The key, as the rule's `key` makes it. A secret key is given as its digest (`"secret:..."`). */
  readonly key: Key;
  /** The name of one of the rule's `plans`. */
  readonly plan: string;
  /** When it ends: a date (midnight in UTC), or a time with its zone: `"2027-01-31T18:00:00+01:00"`. */
  readonly until: string;
}

export interface Granted {
  readonly plan: string;
  readonly limit: Limit;
  /** In milliseconds since the epoch. */
  readonly untilMs: number;
}

const example = 'grants: [{ key: "42", plan: "pro", until: "2027-01-31" }]';

/**
 * Compiles the grants of a rule, by the text of the key. If a key has two grants, the last one counts.
 * @throws FloodgateError if a grant is invalid, or names a plan that the rule does not have.
 */
export function compileGrants(
  where: string,
  grants: unknown,
  plans: ReadonlyMap<string, Limit> | undefined,
  textOf: (key: Key) => string,
): ReadonlyMap<string, Granted> {
  if (!Array.isArray(grants)) throw invalid(where, "grants", "an array", grants);
  return new Map(
    grants.map((grant: Grant, i) =>
      atPath(["grants", i], () => {
        checkOptions(`${where}: grants`, grant, ["key", "plan", "until"], example);
        const { key, plan, until } = grant;
        const limit = plans?.get(plan);
        if (limit === undefined) {
          const names = plans === undefined ? "the rule has none" : [...plans.keys()].join(", ");
          throw invalid(where, "plan", `one of the rule's plans (${names})`, plan, plans === undefined ? planExample : example);
        }
        const untilMs = isInstant.test(until) && isDate(until.slice(0, 10)) ? Date.parse(until) : Number.NaN;
        if (Number.isNaN(untilMs)) throw invalid(where, "until", "a date, or a time with its zone", until);
        return [atPath(["key"], () => textOf(key)), { plan, limit, untilMs }];
      }),
    ),
  );
}

/** Whether the calendar has this date. `Date.parse` takes February 30 for March 2. */
function isDate(text: string): boolean {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** A time without a zone would differ between servers. */
const isInstant = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

function invalid(where: string, option: "grants" | "plan" | "until", what: string, given: unknown, write = example): FloodgateError {
  const message = `${where}: \`${option}\` ${option === "grants" ? "" : "of a grant "}must be ${what}, but was ${shown(given)}. Write ${write}.`;
  return invalidOption(message, [option]);
}
