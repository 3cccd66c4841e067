import { hasSlots } from "../algorithms/registry.js";
import { renewingStore, type Store } from "../decide/store.js";
import { isZero } from "../decide/zero-limits.js";
import { type Limiter, NamedLimiter, type StoreClient } from "../limits/limiter.js";
import { type Claim, claimNames } from "../limits/names.js";
import { conflict, invalidOption, shown } from "../support/errors.js";
import { CompiledRules, ruleOfOptions, rulesWithDefaults } from "./compile.js";
import { compileExempt } from "./exempt.js";
import { isRuleSource, type Rule, type RuleSet, type RuleSettings, type RuleSource, type RulesOptions } from "./rule.js";

export interface Version<Req> {
  readonly rules: CompiledRules<Req>;
  readonly limiters: ReadonlyMap<string, Limiter>;
}

/** The active rules of a middleware: constant, or those of a live source, replaced as a whole. */
export class ActiveRules<Req> {
  /** The active version: read it once a request, for it may be replaced while a request waits. */
  current!: Version<Req>;
  /** The live source; undefined for constant rules. */
  readonly source: RuleSource | undefined;
  #leave: (() => void) | undefined;
  /** Releases the names of the active version. */
  #release: (() => void) | undefined;

  /** @throws FloodgateError if a rule is wrong. */
  constructor(where: string, options: RulesOptions<Req, string>, settings: RuleSettings<Req>, store: Store, client: StoreClient) {
    const versionOf = (rules: CompiledRules<Req>["all"]): Version<Req> => {
      for (const { fixed, plans, name } of rules) {
        if (fixed !== undefined && isZero(fixed)) warnOfZero(name, settings);
        for (const limit of [fixed, ...(plans?.values() ?? [])]) if (limit !== undefined && hasSlots(limit.policy)) renewingStore(store);
      }
      const compiled = new CompiledRules(rules);
      if (compiled.http.length === 0 && settings.descriptors === undefined) warnOfDescriptors(rules[0]?.name, settings);
      const limiters = rules.map((rule) => [rule.name, new NamedLimiter(store, client, rule, () => refuseToClose(rule.name))] as const);
      return { rules: compiled, limiters: new Map<string, Limiter>(limiters) };
    };
    const { rules } = options;
    if (!isRuleSource(rules)) {
      const all = rules === undefined ? [ruleOfOptions(where, options, settings)] : rulesWithDefaults(where, options, rules, settings);
      checkPlans(where, options, all);
      const claims = all.map(({ name, owner }, i) => ({ name, owner, at: rules === undefined ? [] : ["rules", i] }));
      this.current = versionOf(all);
      // Last, because a refused middleware must hold no names.
      this.#release = claimNames(where, client.guard, claims);
      return;
    }
    // The name of a live rule belongs to its source, which may change the rule in each version.
    this.source = rules;
    const claimsOf = (set: RuleSet): Claim[] => set.rules.map(({ name }, i) => ({ name, owner: rules, at: ["rules", i] }));
    const prepare = (set: RuleSet): (() => void) => {
      const exempt = [...settings.exempt, ...compileExempt(where, set.exempt)];
      const next = versionOf(rulesWithDefaults(where, options, set.rules as readonly Rule<Req, string>[], { ...settings, exempt }));
      // Checks them now, because activating must not fail.
      claimNames(where, client.guard, claimsOf(set))();
      return () => {
        const release = claimNames(where, client.guard, claimsOf(set));
        this.#release?.();
        this.#release = release;
        this.current = next;
      };
    };
    try {
      // A source of the app may have none.
      prepare((rules.current ?? {}) as RuleSet)();
    } catch (error) {
      throw rules.explain?.(error) ?? error;
    }
    this.#leave = rules.subscribe({ prepare, tell: client.onEvent });
  }

  /** The active version stays active, but its names may be reused. */
  close(): void {
    this.#leave?.();
    this.#leave = undefined;
    this.#release?.();
  }
}

function refuseToClose(name: string): never {
  throw invalidOption(`${shown(name)} is a limiter of a middleware, which holds the name. Close the middleware: limit.close().`);
}

/** A limit of 0 may be a kill switch, or a variable that is not set. */
function warnOfZero<Req>(name: string, { warn }: RuleSettings<Req>): void {
  const message = `The limit of ${shown(name)} is 0, so it rejects every request. If that is not meant, give it another limit.`;
  warn("FLOODGATE_LIMIT_OF_ZERO", message, name);
}

/** A rules file for Envoy, given to a middleware, limits nothing. Some such rules among others are right: an app and Envoy may share rules. */
function warnOfDescriptors<Req>(name: string | undefined, { warn }: RuleSettings<Req>): void {
  const message =
    "No rule counts HTTP requests, so nothing is limited: all match descriptors of Envoy's rate limit service. Give them to floodgate serve --rls, or match method, path or header.";
  warn("FLOODGATE_DESCRIPTORS_ONLY", message, name);
}

/** Constant rules without `plans` make the option `plan` a mistake. A live source may add plans later. */
function checkPlans<Req>(where: string, options: RulesOptions<Req, string>, rules: CompiledRules<Req>["all"]): void {
  if (options.plan === undefined || rules.some(({ plans }) => plans !== undefined)) return;
  throw conflict(`${where}: \`plan\` says which plan a request has, but no limit has \`plans\`. Write plans: { pro: { limit: 1000 } }.`, [
    "plan",
  ]);
}
