import type { Limit } from "../decide/limit.js";
import type { Key } from "../limits/key.js";
import { FloodgateError, inside, shown } from "../support/errors.js";
import { checkOptions } from "../support/options.js";

/** Gives one key of a rule another plan for a time. */
export interface Grant {
  /** The key, as the rule's `key` makes it. A secret key is given as its digest (`"secret:..."`). */
  readonly key: Key;
  /** The name of one of the rule's `plans`. */
  readonly plan: string;
  /** When it ends: a date (midnight in UTC), or a time with its zone: `"2027-01-31T18:00:00+01:00"`. */
  readonly until: string;
}

/** A compiled grant. */
export interface Granted {
  readonly plan: string;
  readonly limit: Limit;
  /** In milliseconds since the epoch. */
  readonly untilMs: number;
}

const example = 'grants: [{ key: "42", plan: "pro", until: "2027-01-31" }]';

/**
 * Compiles the grants of a rule, by the text of the key. Of two for one key the last counts.
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
      inside(["grants", i], () => {
        checkOptions(`${where}: grants`, grant, ["key", "plan", "until"], example);
        const { key, plan, until } = grant;
        const limit = plans?.get(plan);
        if (limit === undefined) throw invalid(where, "plan", `one of the rule's plans (${[...(plans?.keys() ?? [])].join(", ")})`, plan);
        const untilMs = isInstant.test(until) ? Date.parse(until) : Number.NaN;
        if (Number.isNaN(untilMs)) throw invalid(where, "until", "a date, or a time with its zone", until);
        return [inside(["key"], () => textOf(key)), { plan, limit, untilMs }];
      }),
    ),
  );
}

/** A time without a zone would differ between servers. */
const isInstant = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

function invalid(where: string, option: "grants" | "plan" | "until", what: string, given: unknown): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`${option}\` ${option === "grants" ? "" : "of a grant "}must be ${what}, but was ${shown(given)}. Write ${example}.`,
    { at: [option] },
  );
}
