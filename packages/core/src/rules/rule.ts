import { slidingWindowCounter } from "../algorithms/sliding-window-counter.js";
import type { Duration } from "../duration.js";
import { FloodgateError, shown } from "../errors.js";
import { encodeKey, type Key } from "../key.js";
import { checkName, createLimit, type Limit } from "../limit.js";
import { checkCost } from "../limiter.js";
import { checkOptions, oneOf } from "../options.js";
import { type Policy, type PolicyOptions, toPolicy } from "../policy.js";
import { abandon, type Check, isPromise } from "../store.js";
import { type KeyOption, type KeySource, type KeySources, keySource, noClientIp } from "./key-source.js";
import { compileMatch, type Match, type Matcher } from "./match.js";

/** What a function of the request may answer at once or by promise. */
export type Promised<T> = T | PromiseLike<T>;

/** What happens to a request without a key: an error, this limit does not apply, it is rejected, or it counts by its IP. */
export type OnMissingKey = "error" | "skip" | "reject" | "ip";

/** What both a rule and a middleware with a single limit say. */
export interface LimitOptions<Req, Own extends string = never> {
  /** The most units in a window; with `window`, short for `policy: slidingWindowCounter({ limit, window })`. */
  limit?: number;
  window?: Duration;
  /** A policy, or a function of the request that answers one (for plans, say). */
  policy?: Policy | PolicyOptions | ((request: Req) => Promised<Policy | PolicyOptions>);
  /** Whom to count; default `"ip"`. */
  key?: KeyOption<Req, Own>;
  /** Default `"error"`. */
  onMissingKey?: OnMissingKey;
  /** The units a request takes: a whole number; 0 passes free of charge. Default 1. */
  cost?: number | ((request: Req) => Promised<number>);
  /** `"shadow"` counts and tells, but rejects nothing and stands in no header. Default `"enforce"`. */
  mode?: "enforce" | "shadow";
}

/** One limit of several: a name, what it matches, a key and a policy. */
export interface Rule<Req, Own extends string = never> extends LimitOptions<Req, Own> {
  name: string;
  /** Default: every request. */
  match?: Match;
}

export const limitWords: readonly string[] = ["limit", "window", "policy", "key", "onMissingKey", "cost", "mode"];

/** A request that has no key where one is a must. */
export class TurnedAway {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** What a rule says of a request: what to check it for, that it must not pass, or undefined where it lets it be. */
export type Found = Check | TurnedAway | undefined;

/** A rule made ready: options checked, key and match compiled, limits made. */
export class CompiledRule<Req> {
  readonly name: string;
  readonly shadow: boolean;
  readonly matcher: Matcher | undefined;
  /** The limits that have been decided under this rule, one for each kind of state: more than one only with a policy function. */
  readonly limits: Map<string, Limit> = new Map();
  /** The only one, unless the policy is a function of the request. */
  readonly fixed: Limit | undefined;
  /** What its name stands for on a store. */
  readonly meaning: Policy | ((request: Req) => unknown);
  readonly #where: string;
  readonly #policy: ((request: Req) => unknown) | undefined;
  readonly #byPolicy = new WeakMap<Policy, Limit>();
  readonly #key: KeySource<Req>;
  readonly #ip: KeySource<Req>;
  readonly #onMissingKey: OnMissingKey;
  readonly #cost: number | ((request: Req) => unknown);
  readonly #byIp: boolean;

  constructor(where: string, rule: Rule<Req, string>, sources: KeySources<Req>) {
    this.#where = where;
    this.name = checkName(where, rule.name);
    this.shadow = rule.mode !== undefined && oneOf(where, "mode", rule.mode, ["enforce", "shadow"]) === "shadow";
    this.matcher = compileMatch(where, rule.match);
    const key = rule.key ?? "ip";
    this.#byIp = key === "ip";
    this.#key = keySource(where, key, sources, this.matcher);
    this.#ip = (request) => sources.ip(request);
    this.#onMissingKey = oneOf(where, "onMissingKey", rule.onMissingKey ?? "error", ["error", "skip", "reject", "ip"]);
    if (this.#byIp && this.#onMissingKey === "ip") {
      throw new FloodgateError(
        "FLOODGATE_CONFLICTING_OPTIONS",
        `${where}: \`onMissingKey: "ip"\` cannot stand in for \`key: "ip"\`. Write onMissingKey: "error", "skip" or "reject".`,
      );
    }
    this.#cost = typeof rule.cost === "function" ? rule.cost : rule.cost === undefined ? 1 : checkRuleCost(where, rule.cost);
    this.meaning = policyOption(where, rule);
    if (typeof this.meaning === "function") this.#policy = this.meaning;
    else this.fixed = this.#limitOf(this.meaning);
  }

  check(request: Req): Promised<Found> {
    const cost = typeof this.#cost === "number" ? this.#cost : this.#cost(request);
    if (cost === 0) return undefined;
    let key: ReturnType<KeySource<Req>>;
    let policy: unknown;
    try {
      key = this.#key(request);
      if (this.#policy !== undefined) policy = this.#policy(request);
    } catch (error) {
      abandon([cost, key]);
      throw error;
    }
    if (isPromise(cost) || isPromise(key) || isPromise(policy)) {
      return Promise.all([cost, key, policy]).then(([cost, key, policy]) => this.#checkOf(request, cost, key, policy));
    }
    return this.#checkOf(request, cost, key, policy);
  }

  #checkOf(request: Req, cost: unknown, key: Key | undefined, policy: unknown): Promised<Found> {
    if (cost === 0) return undefined;
    const units = checkRuleCost(this.#where, cost);
    const limit = this.fixed ?? this.#limitOf(toPolicy(this.#where, policy));
    if (key !== undefined) return { limit, key: encodeKey(key), cost: units, shadow: this.shadow };
    // A limit that is only watched must not turn a request away, for want of a key either.
    const missing = this.shadow && this.#onMissingKey !== "ip" ? "skip" : this.#onMissingKey;
    switch (missing) {
      case "skip":
        return undefined;
      case "reject":
        return new TurnedAway(this.name);
      case "ip": {
        const ip = this.#ip(request);
        const byIp = (address: Key | undefined): Found => {
          if (address !== undefined) return { limit, key: encodeKey(address), cost: units, shadow: this.shadow };
          if (this.shadow) return undefined;
          throw noClientIp();
        };
        return isPromise(ip) ? ip.then(byIp) : byIp(ip);
      }
      case "error":
        if (this.#byIp) throw noClientIp();
        throw new FloodgateError(
          "FLOODGATE_MISSING_KEY",
          `${this.#where}: the request has no key for ${shown(this.name)}, and one that nobody is counted for would be unlimited. Say with \`onMissingKey\` what then: "skip", "reject" or "ip".`,
        );
    }
  }

  #limitOf(policy: Policy): Limit {
    let limit = this.#byPolicy.get(policy);
    if (limit === undefined) {
      limit = createLimit(this.name, policy);
      this.#byPolicy.set(policy, limit);
      this.limits.set(policy.stateKind, limit);
    }
    return limit;
  }
}

function checkRuleCost(where: string, cost: unknown): number {
  try {
    return cost === 0 ? 0 : checkCost(cost);
  } catch (error) {
    throw new FloodgateError("FLOODGATE_INVALID_COST", `${where}: ${(error as Error).message}`);
  }
}

function policyOption<Req>(where: string, rule: LimitOptions<Req, string>): Policy | ((request: Req) => unknown) {
  if (rule.policy !== undefined) {
    if (rule.limit !== undefined || rule.window !== undefined) {
      throw new FloodgateError(
        "FLOODGATE_CONFLICTING_OPTIONS",
        `${where}: \`limit\` and \`window\` are short for a policy, so they cannot stand beside \`policy\`. Give one of the two.`,
      );
    }
    return typeof rule.policy === "function" ? rule.policy : toPolicy(where, rule.policy);
  }
  if (rule.limit === undefined || rule.window === undefined) {
    const given = rule.limit !== undefined ? "`limit` but no `window`" : rule.window !== undefined ? "`window` but no `limit`" : "neither";
    throw new FloodgateError(
      "FLOODGATE_MISSING_LIMIT",
      `${where}: a limit is needed, but there was ${given}. Write { limit: 100, window: "1m" }, or a \`policy\`.`,
    );
  }
  return slidingWindowCounter({ limit: rule.limit, window: rule.window });
}

/** @throws FloodgateError where a rule holds an unknown word or two rules have one name. */
export function compileRules<Req>(where: string, rules: readonly Rule<Req, string>[], sources: KeySources<Req>): CompiledRule<Req>[] {
  if (!Array.isArray(rules) || rules.length === 0) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`rules\` must be an array of at least one rule, but was ${shown(rules)}. Write rules: [{ name: "per-ip", key: "ip", limit: 100, window: "1m" }].`,
    );
  }
  const names = new Set<unknown>();
  return rules.map((rule, index) => {
    const place = `${where}: rules[${index}]`;
    checkOptions(place, rule, ["name", "match", ...limitWords], '{ name: "per-ip", key: "ip", limit: 100, window: "1m" }');
    if (names.has(rule.name)) {
      throw new FloodgateError(
        "FLOODGATE_DUPLICATE_NAME",
        `${place}: the name ${shown(rule.name)} stands for an earlier rule already. Give each rule its own.`,
      );
    }
    names.add(rule.name);
    return new CompiledRule(place, rule, sources);
  });
}
