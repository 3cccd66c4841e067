import type { Policy, PolicyOptions } from "../algorithms/registry.js";
import type { CostFunction, KeyFunction } from "../requests/functions.js";
import type { RequestOptions } from "../requests/request-options.js";
import type { Duration } from "../support/duration.js";
import type { Promised } from "../support/promises.js";
import type { BanOptions } from "./ban.js";
import type { Exempt } from "./exempt.js";
import type { KeyOption } from "./key-source.js";
import type { Match } from "./match.js";
import type { PlanOptions } from "./plans.js";
import type { RuleSource } from "./source.js";

/**
 * What happens to a request without a key. `"ip"`: it counts by its IP address, apart from every key; a limiter names that client
 * `{ missingKeyIp: "203.0.113.9" }`. `"skip"`: this limit does not apply. `"reject"`: a 429. `"error"`: an error of the request.
 */
export type OnMissingKey = "ip" | "skip" | "reject" | "error";

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
  /** What happens to a request without a key. Default `"ip"`; for `key: "ip"` itself `"error"`. */
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

/** What a middleware's options say about its rules. `keys` alone defines the names of keys. */
export interface RulesOptions<Req, Own extends string = never> extends LimitOptions<Req, NoInfer<Own>>, RequestOptions<Req> {
  /** Stands in headers, keys and events; one name on one store is one count. Default `"default"`. */
  name?: string;
  /** Several limits, checked in one atomic step; or a source of rules that change while the server runs. */
  rules?: readonly Rule<Req, NoInfer<Own>>[] | RuleSource;
  /** The keys that `key` and rules name. Each function runs once a request, however many rules use it. */
  keys?: Readonly<Record<Own, KeyFunction<Req>>>;
  /** The costs that `cost` and `settle` name. Each function runs once a request, however many rules use it. */
  costs?: Readonly<Record<string, CostFunction<Req>>>;
  /**
   * Makes the digests of secret keys HMACs; at least 32 characters, the same in every process. Without it they are plain SHA-256,
   * which does not protect what can be guessed, such as passwords and short tokens.
   */
  keySecret?: string;
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
