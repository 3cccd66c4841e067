import type { Policy, PolicyOptions } from "../algorithms/registry.js";
import type { KeyOption } from "../requests/key-source.js";
import type { Duration } from "../support/duration.js";
import type { Promised } from "../support/promises.js";
import type { BanOptions } from "./ban.js";
import type { CostFunction } from "./cost.js";
import type { Exempt } from "./exempt.js";
import type { Match } from "./match.js";
import type { PlanOptions } from "./plans.js";

/**
 * What happens to a request without a key: an error, this limit does not apply, it is rejected, or it counts by its IP address, apart
 * from every key. A limiter names that client `{ missingKeyIp: "203.0.113.9" }`.
 */
export type OnMissingKey = "error" | "skip" | "reject" | "ip";

/** What both a rule and a middleware with a single limit say. */
export interface LimitOptions<Req, Own extends string = never> {
  /** The most units in a window; with `window`, short for `policy: slidingWindowCounter({ limit, window })`. */
  limit?: number;
  window?: Duration;
  /** A policy, or a function of the request that answers one. */
  policy?: Policy | PolicyOptions | ((request: Req) => Promised<Policy | PolicyOptions>);
  /** Other numbers for the plans that the middleware's `plan` names; a request of any other plan has the policy's own. */
  plans?: Readonly<Record<string, PlanOptions>>;
  /** Whom to count; default `"ip"`. */
  key?: KeyOption<Req, Own>;
  /** Default `"error"`. */
  onMissingKey?: OnMissingKey;
  /**
   * The units a request takes: a whole number, 0 passes free of charge (and is not settled); or the name of one of the middleware's
   * `costs`. Default 1.
   */
  cost?: number | string | CostFunction<Req>;
  /**
   * The units that a request has really taken, known once its response is done: what was reserved by `cost` is made up to that, or
   * given back, or owed. Undefined leaves it; a promise is waited for, so that a client which hangs up early owes what its request
   * goes on to cost. A name is one of the middleware's `costs`.
   */
  settle?: string | CostFunction<Req>;
  /** `"shadow"` counts and tells, but rejects nothing and stands in no header. Default `"enforce"`. */
  mode?: "enforce" | "shadow";
  /** Whom this limit does not count. */
  exempt?: Exempt;
  /** Turns away for a while a key that is rejected again and again. */
  ban?: BanOptions;
}

/** One limit of several: a name, what it matches, a key and a policy. */
export interface Rule<Req, Own extends string = never> extends LimitOptions<Req, Own> {
  name: string;
  /** Default: every request. */
  match?: Match | ((request: Req) => Promised<boolean>);
}

/** A rule as a file or a config database says it: what is a function in code is a name there, which the app defines. */
export interface PlainRule extends Readonly<Omit<LimitOptions<unknown>, "policy" | "key" | "cost" | "settle">> {
  readonly name: string;
  readonly match?: Match;
  readonly policy?: PolicyOptions;
  readonly key?: string | readonly string[];
  readonly cost?: number | string;
  readonly settle?: string;
}

/** What a word means beside `rules`: that is an error, the default of rules that do not say it, or holds beside what they say. */
type Beside = "error" | "default" | "addition";

/** The words of a limit, and what they mean where a middleware says them beside its `rules`. */
export const besideRules: Readonly<Record<string, Beside>> = {
  limit: "error",
  window: "error",
  policy: "error",
  plans: "error",
  key: "default",
  onMissingKey: "default",
  cost: "default",
  settle: "default",
  mode: "default",
  exempt: "addition",
  ban: "default",
} satisfies Record<keyof LimitOptions<unknown>, Beside>;

export const limitWords: readonly string[] = Object.keys(besideRules);
