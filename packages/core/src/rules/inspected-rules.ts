import type { RateLimitOptions } from "../middleware/rate-limit-options.js";
import type { RequestReader } from "../requests/request-reader.js";
import { ruleContext } from "../requests/rule-context.js";
import { type CompiledRule, type Found, type RuleCheck, type RuleContext, TurnedAway } from "./compiled-rule.js";
import { CompiledRules } from "./compiled-rules.js";
import { rulesWithDefaults } from "./defaults.js";
import { compileExempt } from "./exempt.js";
import { readingsOf } from "./path.js";
import type { Rule } from "./rule.js";
import type { RuleSet } from "./source.js";

/** Why a rule does not count a request: its method, path or a header does not fit; it is exempt, free of charge or has no key. */
export type NotCounted = "method" | "path" | "header" | "exempt" | "free" | "no-key";

/** What a rule says of one request. */
export type Explanation<Req> = { readonly rule: CompiledRule<Req> } & (
  | { readonly says: "counts"; readonly check: RuleCheck<Req> }
  | { readonly says: "passes"; readonly because: NotCounted }
  /** It has no key, and is turned away for it. */
  | { readonly says: "rejects" }
  /** It cannot be decided: an error of the app. */
  | { readonly says: "fails"; readonly error: unknown }
  /** It says something else, but another rule decides for the whole request, which rejects it or fails: nothing is charged. */
  | { readonly says: "overruled"; readonly by: CompiledRule<Req> }
);

/** Rules looked into beside a middleware, by the code with which one of the same options would decide. */
export class InspectedRules<Req> {
  /** In their order. */
  readonly all: readonly CompiledRule<Req>[];
  readonly #rules: CompiledRules<Req>;
  readonly #reader: RequestReader<Req>;
  readonly #plan: RuleContext<Req>["plan"];
  /** The same rules without what may keep a request from being counted, one thing after the other. */
  readonly #without: readonly (readonly [NotCounted, readonly CompiledRule<Req>[]])[];

  /** @throws FloodgateError where an option or a rule is wrong. */
  constructor(where: string, set: RuleSet, options: Omit<RateLimitOptions<Req, string>, "rules">, reader: RequestReader<Req>) {
    const context = ruleContext(where, options, reader);
    const compile = (rules: RuleSet["rules"], exempt: RuleContext<Req>["exempt"]): CompiledRule<Req>[] =>
      rulesWithDefaults(where, options, rules as readonly Rule<Req, string>[], { ...context, exempt });
    this.all = compile(set.rules, compileExempt(where, set.exempt));
    this.#rules = new CompiledRules(this.all);
    this.#reader = reader;
    this.#plan = options.plan;
    const notExempt = set.rules.map(({ exempt, ...rule }) => rule);
    this.#without = [
      ["exempt", compile(notExempt, [])],
      // The last: a request that is not free is counted, but for want of a key.
      [
        "free",
        compile(
          notExempt.map((rule) => ({ ...rule, cost: 1 })),
          [],
        ),
      ],
    ];
  }

  /** What each rule says of a request, in their order. Nothing is charged. */
  async explain(request: Req): Promise<Explanation<Req>[]> {
    const fitting = new Set(this.#rules.find(request, this.#reader));
    const plan = (await this.#plan?.(request)) ?? undefined;
    const explanations = await Promise.all(
      this.all.map((rule, i) =>
        fitting.has(rule)
          ? this.#explainFitting(rule, i, request, plan)
          : ({ rule, says: "passes", because: this.#misfit(rule, request) } as const),
      ),
    );
    return asWhole(explanations);
  }

  async #explainFitting(rule: CompiledRule<Req>, i: number, request: Req, plan: string | undefined): Promise<Explanation<Req>> {
    let found: Found<Req>;
    try {
      found = await rule.check(request, plan);
    } catch (error) {
      return { rule, says: "fails", error };
    }
    if (found instanceof TurnedAway) return { rule, says: "rejects" };
    if (found !== undefined) return { rule, says: "counts", check: found };
    for (const [because, rules] of this.#without) {
      if (await isSeen(rules[i] as CompiledRule<Req>, request, plan)) return { rule, says: "passes", because };
    }
    return { rule, says: "passes", because: "no-key" };
  }

  /** The first part of a match that does not fit. */
  #misfit({ match }: CompiledRule<Req>, request: Req): NotCounted {
    if (match?.methods?.has(this.#reader.method(request).toUpperCase()) === false) return "method";
    if (match?.paths !== undefined && match.pattern(readingsOf(this.#reader.path(request))) === undefined) return "path";
    return "header";
  }
}

/** All that match are checked in one step: one that fails decides for the others, or else one that rejects. */
function asWhole<Req>(explanations: Explanation<Req>[]): Explanation<Req>[] {
  const decisive = explanations.find(({ says }) => says === "fails") ?? explanations.find(({ says }) => says === "rejects");
  if (decisive === undefined) return explanations;
  return explanations.map((one) =>
    one.says === "passes" || one.says === decisive.says ? one : { rule: one.rule, says: "overruled", by: decisive.rule },
  );
}

/** Whether a rule has anything to say of a request, and be it that it cannot be decided. */
async function isSeen<Req>(rule: CompiledRule<Req>, request: Req, plan: string | undefined): Promise<boolean> {
  try {
    return (await rule.check(request, plan)) !== undefined;
  } catch {
    return true;
  }
}
