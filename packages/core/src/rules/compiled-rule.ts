import { factoryName, toPolicy } from "../algorithms/policy.js";
import type { Policy } from "../algorithms/registry.js";
import { slidingWindowCounter } from "../algorithms/sliding-window-counter.js";
import type { WarningCode } from "../limits/events.js";
import { type CountedKey, countedText, isMissingKeyIp, type LimiterKey, missingKeyText, namedMissingKeyText } from "../limits/key.js";
import { checkName, createLimit, type Limit } from "../limits/limit.js";
import { type Meaning, meaningOf } from "../limits/names.js";
import { type KeySource, type KeySources, keySource, noClientIp, withAddresses } from "../requests/key-source.js";
import { namedKeyText } from "../requests/secret-keys.js";
import type { Check } from "../stores/store.js";
import { FloodgateError, inside, shown } from "../support/errors.js";
import { oneOf } from "../support/options.js";
import type { Promised } from "../support/promises.js";
import { abandon, andThen, isPromise } from "../support/promises.js";
import { yesOrNo } from "./answer.js";
import { Ban } from "./ban.js";
import { type CostFunction, type Costs, checkReachable, checkRuleCost, namedCost } from "./cost.js";
import { compileExempt, type Exempted, Exemptions } from "./exempt.js";
import { type CompiledMatch, compileMatch } from "./match.js";
import { compilePlans } from "./plans.js";
import type { LimitOptions, OnMissingKey, Rule } from "./rule.js";

/** What the rules of one middleware share: what their names stand for, and whom none of them counts. */
export interface RuleContext<Req> {
  readonly sources: KeySources<Req>;
  readonly costs: Costs<Req>;
  /** The plan of a request; undefined where the app says none. */
  readonly plan: ((request: Req) => Promised<string | undefined>) | undefined;
  readonly exempt: readonly Exempted[];
  readonly warn: Warn;
}

/** Warns of a probable mistake in the rule with this name: `onEvent`, or the console once in a process. */
export type Warn = (code: WarningCode, message: string, name: string) => void;

/** What a rule says of a request that it counts. */
export interface RuleCheck<Req> extends Check {
  readonly rule: CompiledRule<Req>;
}

/** A request that has no key where one is a must. */
export class TurnedAway {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** What a rule says of a request: what to check it for, that it must not pass, or undefined where it lets it be. */
export type Found<Req> = RuleCheck<Req> | TurnedAway | undefined;

/** A rule made ready: options checked, key and match compiled, limits made. */
export class CompiledRule<Req> {
  readonly name: string;
  readonly shadow: boolean;
  readonly match: CompiledMatch | undefined;
  /** A match that is a function of the request. */
  readonly test: ((request: Req) => Promised<boolean>) | undefined;
  /** The limits that have been decided under this rule, one for each kind of state: more than one only with plans or a policy function. */
  readonly limits: Map<string, Limit> = new Map();
  /** The rule's own, unless the policy is a function of the request. */
  readonly fixed: Limit | undefined;
  readonly plans: ReadonlyMap<string, Limit> | undefined;
  readonly ban: Ban | undefined;
  readonly settle: CostFunction<Req> | undefined;
  /** What its name stands for on a store. */
  readonly meaning: Meaning;
  readonly #where: string;
  readonly #policy: ((request: Req) => unknown) | undefined;
  readonly #byPolicy = new WeakMap<Policy, Limit>();
  readonly #key: KeySource<Req>;
  readonly #sources: KeySources<Req>;
  readonly #onMissingKey: OnMissingKey;
  readonly #cost: number | CostFunction<Req>;
  readonly #byIp: boolean;
  readonly #exempt: Exemptions | undefined;
  readonly #warn: Warn;
  #toldOfNothing = false;
  /** How many more keys are looked at for whole addresses: they show early, and "ip" never makes one. */
  #keyLooksLeft: number;

  /** @throws FloodgateError where an option is wrong. */
  constructor(where: string, rule: Rule<Req, string>, context: RuleContext<Req>) {
    const { sources } = context;
    this.#where = where;
    this.#sources = sources;
    this.#warn = context.warn;
    this.name = inside(["name"], () => checkName(where, rule.name));
    this.shadow = rule.mode !== undefined && oneOf(where, "mode", rule.mode, ["enforce", "shadow"]) === "shadow";
    if (typeof rule.match === "function") this.test = rule.match;
    else if (rule.match !== undefined) this.match = compileMatch(where, rule.match);
    const { key = "ip", onMissingKey = "error", cost = 1 } = rule;
    this.#byIp = key === "ip";
    this.#keyLooksLeft = this.#byIp ? 0 : 1000;
    this.#key = inside(["key"], () => keySource(where, key, sources, this.match));
    this.#onMissingKey = oneOf(where, "onMissingKey", onMissingKey, ["error", "skip", "reject", "ip"]);
    if (this.#byIp && this.#onMissingKey === "ip") {
      throw new FloodgateError(
        "FLOODGATE_CONFLICTING_OPTIONS",
        `${where}: \`onMissingKey: "ip"\` cannot stand in for \`key: "ip"\`. Write onMissingKey: "error", "skip" or "reject".`,
        { at: ["onMissingKey"] },
      );
    }
    this.#cost = costOf(where, cost, context.costs);
    this.settle = settleOf(where, rule.settle, context.costs);
    if (this.settle !== undefined && this.#cost === 0) {
      throw new FloodgateError(
        "FLOODGATE_CONFLICTING_OPTIONS",
        `${where}: \`cost: 0\` passes free of charge, so there is nothing for \`settle\` to settle. Reserve something: cost: 1.`,
        { at: ["cost"] },
      );
    }
    const policy = policyOption(where, rule);
    if (typeof policy === "function") this.#policy = policy;
    else this.fixed = this.limitOf(policy);
    if (rule.plans !== undefined) this.plans = this.#plans(rule.plans, policy, context);
    const plans = [...(this.plans ?? [])].flatMap(([plan, limit]) => [plan, limit.policy]);
    if (typeof this.#cost === "number")
      checkReachable(where, this.#cost, [...(this.fixed ? [this.fixed] : []), ...(this.plans?.values() ?? [])]);
    this.meaning = typeof policy === "function" ? policy : meaningOf(policy, ...plans);
    if (rule.ban !== undefined) this.ban = new Ban(where, this.name, rule.ban);
    this.#exempt = Exemptions.of([...context.exempt, ...compileExempt(where, rule.exempt)], (key) =>
      namedKeyText(key, this.#key.secrecy, sources.digests),
    );
  }

  #plans(
    options: NonNullable<Rule<Req>["plans"]>,
    base: Policy | ((request: Req) => unknown),
    { plan }: RuleContext<Req>,
  ): ReadonlyMap<string, Limit> {
    if (typeof base === "function") {
      throw new FloodgateError(
        "FLOODGATE_CONFLICTING_OPTIONS",
        `${this.#where}: \`plans\` cannot stand beside a policy that is a function of the request. Let the function answer each plan's policy.`,
        { at: ["plans"] },
      );
    }
    if (plan === undefined) {
      throw new FloodgateError(
        "FLOODGATE_MISSING_PLAN",
        `${this.#where}: there are \`plans\`, but nothing says which one a request has. Give the middleware a \`plan\`: plan: (req) => req.user?.plan.`,
        { at: ["plans"] },
      );
    }
    const policies = inside(["plans"], () => compilePlans(this.#where, options, base));
    return new Map([...policies].map(([name, policy]) => [name, this.limitOf(policy)]));
  }

  /**
   * Whether the answer of a match function says that the rule is for the request.
   * @throws FloodgateError `FLOODGATE_INVALID_ANSWER` unless it is a boolean, undefined or null.
   */
  applies(answer: unknown): boolean {
    if (typeof answer === "boolean") return answer;
    const applies = yesOrNo(this.#where, "match", answer, '(req) => req.get("x-beta") === "1"');
    if (!this.#toldOfNothing) {
      this.#toldOfNothing = true;
      this.#warn(
        "FLOODGATE_MATCH_ANSWERS_NOTHING",
        `The \`match\` function of ${shown(this.name)} has answered ${answer}, so the rule did not apply to that request. If the function lacks a \`return\`, the rule never applies. Let it answer true or false.`,
        this.name,
      );
    }
    return applies;
  }

  /** @param plan the request's, where this rule has plans. */
  check(request: Req, plan: string | undefined): Promised<Found<Req>> {
    const exempt = this.#exempt;
    if (exempt?.hasRanges !== true) return this.#find(request, plan);
    return andThen<string | undefined, Found<Req>>(this.#sources.address(request), (address) =>
      address !== undefined && exempt.hasAddress(address) ? undefined : this.#find(request, plan),
    );
  }

  /** The limit of a policy: the same for the same policy. */
  limitOf(policy: Policy): Limit {
    let limit = this.#byPolicy.get(policy);
    if (limit === undefined) {
      limit = createLimit(this.name, policy);
      this.#byPolicy.set(policy, limit);
      this.limits.set(policy.stateKind, limit);
    }
    return limit;
  }

  /**
   * The text of a key that is given to the rule's limiter. A secret may be given as the key itself or as its digest, an address in any
   * notation.
   * @throws FloodgateError `FLOODGATE_INVALID_KEY` if the key is invalid, or has another number of parts than the rule's.
   */
  keyText(key: LimiterKey): string {
    if (isMissingKeyIp(key)) return namedMissingKeyText(key, this.#sources.ipv6Prefix);
    const { secrecy } = this.#key;
    const text = namedKeyText(withAddresses(this.#key, key, this.#sources.ipv6Prefix), secrecy, this.#sources.digests);
    if (text !== undefined) return text;
    const parts = (secrecy as readonly boolean[]).map(() => "...").join(", ");
    throw new FloodgateError(
      "FLOODGATE_INVALID_KEY",
      `The key of ${shown(this.name)} is a tuple with secret parts, but another key was given. Write [${parts}], with the parts in the rule's order.`,
    );
  }

  /**
   * The limits under which a key may have a count. A policy function without parameters is called for its policy. For any other
   * function these are the policies that it has answered in this process.
   * @throws FloodgateError `FLOODGATE_NO_POLICY` if none is known: a reset would silently change nothing.
   */
  countedLimits(): Promised<readonly Limit[]> {
    const known = (): readonly Limit[] => [...this.limits.values()];
    if (this.#policy === undefined) return known();
    if (this.#policy.length > 0) return this.#someOf(known());
    return andThen<unknown, readonly Limit[]>((this.#policy as () => unknown)(), (policy) => {
      this.limitOf(toPolicy(this.#where, policy));
      return known();
    });
  }

  #someOf(known: readonly Limit[]): readonly Limit[] {
    if (known.length > 0) return known;
    throw new FloodgateError(
      "FLOODGATE_NO_POLICY",
      `The policy of ${shown(this.name)} is a function of the request, and this process has decided no request under it yet, so nobody knows here which counts a key may have. Give the rule a policy and \`plans\`, which are known without a request: plans: { pro: { limit: 1000 } }, plan: (req) => req.user?.plan.`,
    );
  }

  #find(request: Req, plan: string | undefined): Promised<Found<Req>> {
    const cost = typeof this.#cost === "number" ? this.#cost : this.#cost(request);
    if (cost === 0) return undefined;
    let key: ReturnType<KeySource<Req>["of"]>;
    let policy: unknown;
    try {
      key = this.#key.of(request);
      if (this.#policy !== undefined) policy = this.#policy(request);
    } catch (error) {
      abandon([cost, key]);
      throw error;
    }
    if (isPromise(cost) || isPromise(key) || isPromise(policy)) {
      return Promise.all([cost, key, policy]).then(([cost, key, policy]) => this.#found(request, plan, cost, key, policy));
    }
    return this.#found(request, plan, cost, key, policy);
  }

  #found(request: Req, plan: string | undefined, cost: unknown, key: CountedKey | undefined, policy: unknown): Promised<Found<Req>> {
    if (cost === 0) return undefined;
    const units = typeof this.#cost === "number" ? this.#cost : checkRuleCost(this.#where, cost);
    const planned = plan === undefined ? undefined : this.plans?.get(plan);
    const limit = planned ?? this.fixed ?? this.limitOf(toPolicy(this.#where, policy));
    if (this.#keyLooksLeft > 0 && key !== undefined) this.#lookAtKey(request, key);
    if (key !== undefined) return this.#check(limit, countedText(key), units);
    // A limit that is only watched must not turn a request away, for want of a key either.
    const missing = this.shadow && this.#onMissingKey !== "ip" ? "skip" : this.#onMissingKey;
    switch (missing) {
      case "skip":
        return undefined;
      case "reject":
        return new TurnedAway(this.name);
      case "ip":
        return andThen<string | undefined, Found<Req>>(this.#sources.ip(request), (address) => {
          if (address !== undefined) return this.#check(limit, missingKeyText(address), units);
          if (this.shadow) return undefined;
          throw noClientIp();
        });
      case "error":
        if (this.#byIp) throw noClientIp();
        throw new FloodgateError(
          "FLOODGATE_MISSING_KEY",
          `${this.#where}: the request has no key for ${shown(this.name)}, and one that nobody is counted for would be unlimited. Say with \`onMissingKey\` what then: "skip", "reject" or "ip".`,
        );
    }
  }

  #lookAtKey(request: Req, key: CountedKey): void {
    this.#keyLooksLeft--;
    const isAddress = (part: unknown): boolean =>
      typeof part === "string" && part.includes(":") && this.#sources.isWholeIpv6(request, part);
    if (!(Array.isArray(key) ? key.some(isAddress) : isAddress(key))) return;
    this.#keyLooksLeft = 0;
    this.#warn(
      "FLOODGATE_KEY_PER_ADDRESS",
      `The key of ${shown(this.name)} has the client's whole IPv6 address in it. One client has 2^64 addresses or more, so this limits nobody. Write key: "ip", or (req, { ip }) => ip: that is the client's network.`,
      this.name,
    );
  }

  #check(limit: Limit, key: string, cost: number): RuleCheck<Req> | undefined {
    if (this.#exempt?.hasKey(key)) return undefined;
    return { limit, key, cost, shadow: this.shadow, rule: this };
  }
}

function costOf<Req>(where: string, cost: unknown, costs: Costs<Req>): number | CostFunction<Req> {
  if (typeof cost === "function") return cost as CostFunction<Req>;
  return typeof cost === "string" ? namedCost(where, "cost", cost, costs) : checkRuleCost(where, cost);
}

function settleOf<Req>(where: string, settle: unknown, costs: Costs<Req>): CostFunction<Req> | undefined {
  if (settle === undefined || typeof settle === "function") return settle as CostFunction<Req> | undefined;
  if (typeof settle === "string") return namedCost(where, "settle", settle, costs);
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`settle\` must be a function or the name of one of \`costs\`, but was ${shown(settle)}. Write settle: (req) => req.tokensUsed.`,
    { at: ["settle"] },
  );
}

function policyOption<Req>(where: string, rule: LimitOptions<Req, string>): Policy | ((request: Req) => unknown) {
  const { policy, limit, window } = rule;
  if (policy !== undefined) {
    if (limit !== undefined || window !== undefined) {
      throw new FloodgateError(
        "FLOODGATE_CONFLICTING_OPTIONS",
        `${where}: \`limit\` and \`window\` are short for a policy, so they cannot stand beside \`policy\`. Give one of the two.`,
        { at: [limit === undefined ? "window" : "limit"] },
      );
    }
    return typeof policy === "function" && factoryName(policy) === undefined ? policy : inside(["policy"], () => toPolicy(where, policy));
  }
  if (typeof limit === "function") {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`limit\` must be a number, but was a function. Write plans, or policy: (request) => slidingWindowCounter({ limit: ..., window: "1m" }).`,
      { at: ["limit"] },
    );
  }
  if (limit === undefined || window === undefined) {
    const given = limit !== undefined ? "`limit` but no `window`" : window !== undefined ? "`window` but no `limit`" : "neither";
    throw new FloodgateError(
      "FLOODGATE_MISSING_LIMIT",
      `${where}: a limit is needed, but there was ${given}. Write { limit: 100, window: "1m" }, or a \`policy\`.`,
    );
  }
  return slidingWindowCounter({ limit, window });
}
