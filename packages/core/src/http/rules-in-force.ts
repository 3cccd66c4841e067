import { claimName, type Limiter } from "../limiter.js";
import type { RuleContext } from "../rules/compiled-rule.js";
import { CompiledRules } from "../rules/compiled-rules.js";
import { compileExempt } from "../rules/exempt.js";
import type { Rule } from "../rules/rule.js";
import { RuleLimiter } from "../rules/rule-limiter.js";
import { isRuleSource, type RuleSet, type RuleSource } from "../rules/source.js";
import type { Store } from "../store.js";
import type { Asking } from "./afterwards.js";
import { givenRules, ownRule, type RateLimitOptions } from "./rate-limit-options.js";

/** One version of a middleware's rules. */
export interface Version<Req> {
  readonly rules: CompiledRules<Req>;
  readonly limiters: ReadonlyMap<string, Limiter>;
}

/** The rules of a middleware: the same for good, or those of a live source, swapped whole. */
export class RulesInForce<Req> {
  #current: Version<Req>;
  #leave: (() => void) | undefined;

  /** @throws FloodgateError where a rule is wrong. */
  constructor(where: string, options: RateLimitOptions<Req, string>, context: RuleContext<Req>, store: Store, asking: Asking) {
    const make = (rules: CompiledRules<Req>["all"], source?: RuleSource): Version<Req> => {
      // Of a live rule the source decides what its name means, version after version.
      for (const rule of rules) claimName(where, store, rule.name, source ?? rule.meaning);
      const limiters = rules.map((rule) => [rule.name, new RuleLimiter(store, asking.guard, rule, asking.onEvent)] as const);
      return { rules: new CompiledRules(rules), limiters: new Map<string, Limiter>(limiters) };
    };
    const { rules } = options;
    if (!isRuleSource(rules)) {
      this.#current = make(rules === undefined ? [ownRule(where, options, context)] : givenRules(where, options, rules, context));
      return;
    }
    const makeLive = (set: RuleSet): Version<Req> => {
      const exempt = [...context.exempt, ...compileExempt(where, set.exempt)];
      return make(givenRules(where, options, set.rules as readonly Rule<Req, string>[], { ...context, exempt }), rules);
    };
    this.#current = makeLive(rules.current);
    this.#leave = rules.subscribe({
      prepare: (set) => {
        const next = makeLive(set);
        return () => {
          this.#current = next;
        };
      },
      tell: asking.onEvent,
    });
  }

  get current(): Version<Req> {
    return this.#current;
  }

  close(): void {
    this.#leave?.();
    this.#leave = undefined;
  }
}
