import { checkLease, heldPolicy, type Policy, toPolicy } from "../algorithms/registry.js";
import { type Check, createLimit, type Limit } from "../decide/decision.js";
import { isZero } from "../decide/zero-limits.js";
import { type CountedKey, countedText, isMissingKeyIp, type LimiterKey, missingKeyText, namedMissingKeyText } from "../limits/key.js";
import type { LimitDefinition, PlannedLimit } from "../limits/limiter.js";
import { checkName, type NameOwner, ownerOf } from "../limits/names.js";
import type { CostFunction } from "../requests/functions.js";
import { noClientIp, type RequestContext } from "../requests/request-context.js";
import { lostAddress } from "../requests/request-reader.js";
import { durationOption } from "../support/duration.js";
import { atPath, conflict, FloodgateError, reasonOf, shown } from "../support/errors.js";
import type { IpRange } from "../support/ip.js";
import { getOrMake } from "../support/maps.js";
import { oneOf, yesOrNo } from "../support/options.js";
import { abandon, andThen, attempt, isPromise, type Promised } from "../support/promises.js";
import { Ban } from "./bans.js";
import { checkReachable, checkRuleCost, costOf, type RefundWhen, refundWhen, settleOf } from "./cost.js";
import { compileExempt, isInRanges } from "./exempt.js";
import { type KeySource, keyedEntries, keySource } from "./key-source.js";
import { type CompiledMatch, compileMatch, type Match } from "./match.js";
import { compileGrants, compilePlans, type Granted, policyOption } from "./plans.js";
import type { OnMissingKey, Rule, RuleSettings } from "./rule.js";
import { namedKeyText } from "./secret-keys.js";

/** What a rule checks a request for. */
export interface RuleCheck<Req> extends Check {
  readonly rule: CompiledRule<Req>;
}

/**
 * Why a rule does not count a request: its match function says no; the client or the key is exempt; the request is free of charge; it has
 * no key, and passes this rule (`no-key`) or is rejected for it (`missing-key`); the rule is in shadow mode and failed.
 */
export type NotCounted = "no-match" | "exempt" | "free" | "no-key" | "missing-key" | "shadow-fault";

/** What a rule answers about a request: the check to make, or the reason why it makes no check. */
export type Asked<Req> = RuleCheck<Req> | NotCounted;

/** A rule made ready: options checked, key and match compiled, limits made. */
export class CompiledRule<Req> implements LimitDefinition {
  readonly name: string;
  readonly shadow: boolean;
  /** Whether a request with an ambiguous path gets a 400. */
  readonly rejectsAmbiguousPath: boolean;
  readonly match: CompiledMatch | undefined;
  /** The rule's own, unless the policy is a function of the request. */
  readonly fixed: Limit | undefined;
  readonly plans: ReadonlyMap<string, Limit> | undefined;
  readonly ban: Ban | undefined;
  readonly settle: CostFunction<Req> | undefined;
  readonly refundWhen: RefundWhen | undefined;
  readonly inHeaders: boolean;
  /** Whether it may need the client's address. */
  readonly readsAddress: boolean;
  /** Whether a limit of it may be 0: of its policy, a plan, or a policy function. */
  readonly mayBeZero: boolean;
  /** What its name stands for on a store. */
  readonly owner: NameOwner;
  /** As it was given, with the middleware's defaults. */
  readonly options: Rule<Req, string>;
  /** What this rule asks for a request that its match fits. A shadow rule never fails a request. */
  readonly ask: (context: RequestContext<Req>) => Promised<Asked<Req>>;
  readonly #where: string;
  readonly #test: ((request: Req) => Promised<boolean>) | undefined;
  readonly #policy: ((request: Req) => unknown) | undefined;
  readonly #byPolicy = new WeakMap<Policy, Limit>();
  /** The limits of the policies that a policy function has answered, by kind of state. */
  readonly #answered = new Map<string, Limit>();
  readonly #key: KeySource<Req>;
  readonly #onMissingKey: OnMissingKey;
  readonly #cost: number | CostFunction<Req>;
  readonly #byIp: boolean;
  /** Clients and keys, as text, that are exempt: the rule's own, and those of all rules. */
  readonly #exemptRanges: readonly IpRange[];
  readonly #exemptKeys: ReadonlySet<string | undefined> | undefined;
  readonly #grants: ReadonlyMap<string, Granted> | undefined;
  readonly #lease: boolean | undefined;
  readonly #holdMs: number | undefined;
  readonly #settings: RuleSettings<Req>;

  /** @throws FloodgateError where an option is wrong. */
  constructor(where: string, rule: Rule<Req, string>, settings: RuleSettings<Req>) {
    settings.checkRule?.(where, rule);
    this.#where = where;
    this.options = rule;
    this.#settings = settings;
    this.name = atPath(["name"], () => checkName(where, rule.name));
    const { mode = "enforce", ambiguousPath = "count" } = rule;
    this.shadow = oneOf(where, "mode", mode, ["enforce", "shadow"]) === "shadow";
    this.rejectsAmbiguousPath = oneOf(where, "ambiguousPath", ambiguousPath, ["count", "reject"]) === "reject" && !this.shadow;
    const { descriptors } = settings;
    const readDescriptor = descriptors && ((at: string, match: Match) => descriptors.compileMatch(at, match, keyedEntries(rule.key)));
    if (typeof rule.match === "function") this.#test = rule.match;
    else if (rule.match !== undefined) this.match = compileMatch(where, rule.match, readDescriptor);
    const { key = "ip", cost = 1 } = rule;
    this.#byIp = key === "ip";
    const { onMissingKey = this.#byIp ? "error" : "ip" } = rule;
    this.#key = atPath(["key"], () => keySource(where, key, settings, this.match));
    this.#onMissingKey = oneOf(where, "onMissingKey", onMissingKey, ["ip", "skip", "reject", "error"]);
    if (this.#byIp && this.#onMissingKey === "ip") {
      const message = `${where}: \`onMissingKey: "ip"\` cannot stand in for \`key: "ip"\`. Write onMissingKey: "error", "skip" or "reject".`;
      throw conflict(message, ["onMissingKey"]);
    }
    this.#cost = costOf(where, cost, settings.costs);
    this.settle = settleOf(where, rule.settle, settings.costs, settings.cost);
    this.refundWhen = refundWhen(where, rule.refundWhen);
    this.inHeaders = rule.headers !== false;
    if (this.settle !== undefined && this.#cost === 0) {
      const message = `${where}: \`cost: 0\` passes free of charge, so there is nothing for \`settle\` to settle. Reserve something: cost: 1.`;
      throw conflict(message, ["cost"]);
    }
    const policy = policyOption(where, rule);
    this.#holdMs = rule.hold === undefined ? undefined : durationOption(where, "hold", rule.hold);
    this.#lease = rule.lease;
    if (typeof policy === "function") this.#policy = policy;
    else this.fixed = this.limitOf(policy);
    if (rule.plans !== undefined) this.plans = this.#plans(rule.plans, policy);
    const limits = [this.fixed, ...(this.plans?.values() ?? [])].filter((limit) => limit !== undefined);
    checkLease(where, rule.lease, limits);
    if (typeof this.#cost === "number") checkReachable(where, this.#cost, limits);
    this.mayBeZero = this.#policy !== undefined || limits.some(isZero);
    const plans = [...(this.plans ?? [])].flatMap(([plan, limit]) => [plan, limit.policy]);
    this.owner = typeof policy === "function" ? policy : ownerOf(this.fixed?.policy, ...plans);
    if (rule.ban !== undefined) this.ban = new Ban(where, this.name, rule.ban);
    const exempt = [...settings.exempt, ...compileExempt(where, rule.exempt)];
    this.#exemptRanges = exempt.flatMap(({ ranges }) => ranges);
    const exemptKeys = exempt.flatMap(({ keys }) => keys).map((key) => namedKeyText(key, this.#key.kind, settings.digests));
    if (exemptKeys.length > 0) this.#exemptKeys = new Set(exemptKeys);
    if (rule.grants !== undefined) this.#grants = compileGrants(where, rule.grants, this.plans, (key) => this.keyText(key));
    const countsAll = this.#test === undefined && this.#exemptRanges.length === 0;
    this.ask = this.shadow ? this.#askInShadow : countsAll ? this.#askForCheck : this.#askIfMatching;
    const isByIpIfMissing = this.#onMissingKey === "ip" && this.#key.mayBeMissing;
    this.readsAddress = this.#key.readsAddress || isByIpIfMissing || this.#exemptRanges.length > 0;
  }

  #plans(options: NonNullable<Rule<Req>["plans"]>, base: Policy | ((request: Req) => unknown)): ReadonlyMap<string, Limit> {
    if (typeof base === "function") {
      throw conflict(`${this.#where}: \`plans\` cannot stand beside a policy function. Let that answer each plan's policy.`, ["plans"]);
    }
    // Plans may be there for grants alone.
    if (!this.#settings.hasPlan && this.options.grants === undefined) {
      const message = `${this.#where}: there are \`plans\`, but nothing says which one a request has. Write plan: (req) => req.user?.plan.`;
      throw new FloodgateError("FLOODGATE_MISSING_PLAN", message, { at: ["plans"] });
    }
    const policies = atPath(["plans"], () => compilePlans(this.#where, options, base));
    return new Map([...policies].map(([name, policy]) => [name, this.limitOf(policy)]));
  }

  #askInShadow(context: RequestContext<Req>): Promised<Asked<Req>> {
    return attempt<Asked<Req>>(
      () => this.#askIfMatching(context),
      (error) => this.#shadowFault(error),
    );
  }

  #askIfMatching(context: RequestContext<Req>): Promised<Asked<Req>> {
    const applies = this.#test === undefined ? true : this.#test(context.request);
    return andThen<unknown, Asked<Req>>(applies, (answer) => (this.#applies(answer) ? this.#askUnlessExempt(context) : "no-match"));
  }

  /** @throws FloodgateError `FLOODGATE_INVALID_ANSWER` unless a match function answers a boolean, undefined or null. */
  #applies(answer: unknown): boolean {
    if (typeof answer === "boolean") return answer;
    const applies = yesOrNo(this.#where, "match", answer, '(req) => req.get("x-beta") === "1"');
    const message = `The \`match\` function of ${shown(this.name)} has answered ${answer}, so the rule did not apply. Let it return true or false.`;
    this.#settings.warn("FLOODGATE_MATCH_ANSWERS_NOTHING", message, this.name);
    return applies;
  }

  #askUnlessExempt(context: RequestContext<Req>): Promised<Asked<Req>> {
    const ranges = this.#exemptRanges;
    if (ranges.length === 0) return this.#askForCheck(context);
    return andThen<string | undefined, Asked<Req>>(context.address(), (address) =>
      address !== undefined && isInRanges(ranges, address) ? "exempt" : this.#askForCheck(context),
    );
  }

  #askForCheck(context: RequestContext<Req>): Promised<Asked<Req>> {
    const cost = typeof this.#cost === "number" ? this.#cost : context.cost(this.#cost);
    if (cost === 0) return "free";
    let key: ReturnType<KeySource<Req>["of"]>;
    let policy: unknown;
    let plan: Promised<string | undefined>;
    try {
      key = this.#byIp ? context.ip() : this.#key.of(context);
      if (this.plans !== undefined) plan = context.plan();
      if (this.#policy !== undefined) policy = this.#policy(context.request);
    } catch (error) {
      abandon([cost, key, plan]);
      throw error;
    }
    // Nothing but objects can be promises, and most requests have none here.
    if (typeof key === "object" || typeof cost === "object" || typeof plan === "object" || policy !== undefined) {
      if (isPromise(key) || isPromise(cost) || isPromise(plan) || isPromise(policy)) {
        return Promise.all([cost, key, plan, policy]).then(([cost, key, plan, policy]) =>
          this.#checkFrom(context, cost, key, plan, policy),
        );
      }
    }
    return this.#checkFrom(context, cost, key, plan, policy);
  }

  #checkFrom(
    context: RequestContext<Req>,
    cost: unknown,
    key: CountedKey | undefined,
    plan: string | undefined,
    policy: unknown,
  ): Promised<Asked<Req>> {
    if (cost === 0) return "free";
    const units = typeof this.#cost === "number" ? this.#cost : checkRuleCost(this.#where, cost);
    const limit = this.plans?.get(plan as string) ?? this.fixed ?? this.limitOf(toPolicy(this.#where, policy));
    if (key === undefined) return this.#checkWithoutKey(context, limit, units);
    // An address is its own text.
    return this.checkOf(limit, this.#byIp ? (key as string) : countedText(key), units);
  }

  #checkWithoutKey(context: RequestContext<Req>, limit: Limit, units: number): Promised<Asked<Req>> {
    // A shadow limit must not reject a request because its key is missing.
    const missing = this.shadow && this.#onMissingKey !== "ip" ? "skip" : this.#onMissingKey;
    switch (missing) {
      case "skip":
        // Its client may have reset the connection to have no address.
        if (!this.shadow && (context.knownAddress === lostAddress || context.settings.reader.hasLeft?.(context.request)))
          throw noClientIp();
        return "no-key";
      case "reject":
        return "missing-key";
      case "ip":
        return andThen<string | undefined, Asked<Req>>(context.ip(), (address) => {
          if (address !== undefined) return this.checkOf(limit, missingKeyText(address), units);
          if (this.shadow) return "no-key";
          throw noClientIp();
        });
      case "error":
        if (this.#byIp) throw noClientIp();
        throw new FloodgateError(
          "FLOODGATE_MISSING_KEY",
          `${this.#where}: the request has no key for ${shown(this.name)}. Say with \`onMissingKey\` what then: ${this.#settings.checkRule === undefined ? '"ip", ' : ""}"skip" or "reject".`,
        );
    }
  }

  /** The check of a key, as text, unless the key is exempt. */
  checkOf(limit: Limit, key: string, cost: number): RuleCheck<Req> | "exempt" {
    if (this.#exemptKeys?.has(key)) return "exempt";
    const granted = this.#grants === undefined ? limit : (this.grantOf(key)?.limit ?? limit);
    return { limit: granted, key, cost, shadow: this.shadow, dryRun: false, rule: this };
  }

  /** The grant of a key, as text, that is in force. */
  grantOf(key: string): Granted | undefined {
    const granted = this.#grants?.get(key);
    return granted !== undefined && Date.now() < granted.untilMs ? granted : undefined;
  }

  #shadowFault(error: unknown): NotCounted {
    this.#settings.warn("FLOODGATE_SHADOW_RULE_FAILS", shadowFault(`${shown(this.name)} is`, error), this.name);
    return "shadow-fault";
  }

  /** The limit of a policy: the same for the same policy. */
  limitOf(policy: Policy): Limit {
    return getOrMake(this.#byPolicy, policy, () => {
      const limit = createLimit(this.name, heldPolicy(this.#where, policy, this.#holdMs), this.#lease);
      this.#answered.set(limit.policy.stateKind, limit);
      return limit;
    });
  }

  /**
   * The text of a key that is given to the rule's limiter. A secret may be given as the key itself or as its digest, an address in any
   * notation.
   * @throws FloodgateError `FLOODGATE_INVALID_KEY` if the key is invalid, or has another number of parts than the rule's.
   */
  keyText(key: LimiterKey): string {
    const { digests, ipv6Prefix } = this.#settings;
    if (isMissingKeyIp(key)) return namedMissingKeyText(key, ipv6Prefix);
    const { kind } = this.#key;
    const text = namedKeyText(key, kind, digests, ipv6Prefix);
    if (text !== undefined) return text;
    const parts = [this.options.key].flat().join(", ");
    const message = `The key of ${shown(this.name)} is a tuple of ${(kind as readonly unknown[]).length} parts, but another key was given. Write all parts in the rule's order: [${parts}].`;
    throw new FloodgateError("FLOODGATE_INVALID_KEY", message);
  }

  /** The limit of the rule's own policy. @throws FloodgateError `FLOODGATE_NO_POLICY` if that is a function of the request. */
  get limit(): Limit {
    if (this.fixed !== undefined) return this.fixed;
    const message = `The policy of ${shown(this.name)} is a function of the request, so it is unknown here. Make a limiter for each policy with createLimiter.`;
    throw new FloodgateError("FLOODGATE_NO_POLICY", message);
  }

  get settled(): string {
    return this.name;
  }

  get rejections(): Limit | undefined {
    return this.ban?.rejections;
  }

  /**
   * The limits under which a key may have a count. A policy function without parameters is called for its policy. For any other
   * function these are the policies that it has answered in this process.
   * @throws FloodgateError `FLOODGATE_NO_POLICY` if none is known: a reset would silently change nothing.
   */
  limits(): Promised<readonly PlannedLimit[]> {
    if (this.fixed !== undefined) {
      const plans = [...(this.plans ?? [])].map(([plan, limit]) => ({ plan, limit }));
      return [{ plan: undefined, limit: this.fixed }, ...plans];
    }
    const answered = (): PlannedLimit[] => [...this.#answered.values()].map((limit) => ({ plan: undefined, limit }));
    if (this.#policy?.length === 0) {
      return andThen<unknown, readonly PlannedLimit[]>((this.#policy as () => unknown)(), (policy) => {
        this.limitOf(toPolicy(this.#where, policy));
        return answered();
      });
    }
    const known = answered();
    if (known.length > 0) return known;
    const message = `The policy of ${shown(this.name)} is a function of the request, and this process has decided none yet. Give the rule a policy, and plans: { pro: { limit: 1000 } }.`;
    throw new FloodgateError("FLOODGATE_NO_POLICY", message);
  }
}

/** Why a request passed that rules in shadow mode failed to count. */
export function shadowFault(rules: string, error: unknown): string {
  return `${rules} in shadow mode, so a request passed that could not be counted. With mode: "enforce" this would be an error: ${reasonOf(error).why}`;
}
