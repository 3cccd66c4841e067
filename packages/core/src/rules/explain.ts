import { emittedRequest } from "../events/decision-events.js";
import { isAmbiguous } from "../requests/path.js";
import { RequestContext } from "../requests/request-context.js";
import { type RequestSettings, requestSettings } from "../requests/request-options.js";
import type { RequestReader } from "../requests/request-reader.js";
import { CompiledRules, rulesWithDefaults } from "./compile.js";
import type { CompiledRule, NotCounted, RuleCheck } from "./compiled-rule.js";
import { compileExempt } from "./exempt.js";
import type { RequestParts } from "./match-index.js";
import { type Rule, type RuleSet, type RulesOptions, ruleSettings } from "./rule.js";
import { headerCost } from "./validate.js";

/**
 * Why a rule does not count a request: its method, path or a header does not fit, it counts descriptors, or a reason of the rule's own.
 */
export type Misfit = "method" | "path" | "header" | "descriptor" | Exclude<NotCounted, "missing-key">;

/** What a rule does with one request. */
export type Explanation<Req> = { readonly rule: CompiledRule<Req> } & (
  | { readonly says: "counts"; readonly check: RuleCheck<Req> }
  | { readonly says: "passes"; readonly because: Misfit }
  /** The rule rejects a request without a key, or with an ambiguous path. */
  | { readonly says: "rejects"; readonly because: "missing-key" | "ambiguous-path" }
  /** An error of the app. */
  | { readonly says: "fails"; readonly error: unknown }
  /** A function of the request decides, and only a real request can be asked. */
  | { readonly says: "unknown"; readonly because: "match" | "policy" }
  /** Another rule rejects the request or fails, so nothing is charged. */
  | { readonly says: "overruled"; readonly by: CompiledRule<Req> }
);

/** Explains requests under rules, without a store. The rules answer as they do in a middleware with the same options. */
export class RuleExplainer<Req> {
  /** In their order. */
  readonly all: readonly CompiledRule<Req>[];
  readonly #rules: CompiledRules<Req>;
  readonly #settings: RequestSettings<Req>;

  /** @throws FloodgateError if an option or a rule is wrong. */
  constructor(where: string, set: RuleSet, options: Omit<RulesOptions<Req, string>, "rules">, reader: RequestReader<Req>) {
    const exempt = compileExempt(where, set.exempt);
    const settings = { ...ruleSettings<Req>(where, options, { cost: headerCost }, undefined), exempt, warn: () => undefined };
    this.all = rulesWithDefaults(where, options, set.rules as readonly Rule<Req, string>[], settings);
    this.#rules = new CompiledRules(this.all);
    this.#settings = requestSettings(where, options, reader);
  }

  /** What each rule does with a request, in their order. */
  explain(request: Req): Promise<Explanation<Req>[]> {
    const context = new RequestContext(request, { decisionName: "rateLimit" }, this.#settings);
    return explainRules(this.#rules, () => context);
  }
}

/**
 * What each rule does with a request, in their order.
 * @param contextOf returns the request as a rule sees it; without a rule, the request whose rules are looked for. A rule that sees another
 * request calls no functions of the app.
 */
export async function explainRules<Req>(
  { index, http, all }: CompiledRules<Req>,
  contextOf: (rule: CompiledRule<Req> | undefined) => RequestContext<Req>,
): Promise<Explanation<Req>[]> {
  const context = contextOf(undefined);
  const fitting = new Set(index?.find(context) ?? http);
  const ambiguous = isAmbiguous(context.settings.reader.path(context.request));
  return asWhole(
    await Promise.all(
      all.map((rule): Explanation<Req> | Promise<Explanation<Req>> => {
        if (!fitting.has(rule)) return { rule, says: "passes", because: misfitOf(rule, context) };
        const own = contextOf(rule);
        const unknown = own === context ? undefined : functionIn(rule.options);
        return unknown === undefined ? explainFitting(rule, own, ambiguous) : { rule, says: "unknown", because: unknown };
      }),
    ),
  );
}

/** An option that is a function of the request. */
function functionIn<Req>({ match, policy }: Rule<Req, string>): "match" | "policy" | undefined {
  if (typeof match === "function") return "match";
  return typeof policy === "function" ? "policy" : undefined;
}

async function explainFitting<Req>(rule: CompiledRule<Req>, context: RequestContext<Req>, ambiguous: boolean): Promise<Explanation<Req>> {
  if (ambiguous && rule.rejectsAmbiguousPath) return { rule, says: "rejects", because: "ambiguous-path" };
  try {
    const asked = await rule.ask(context);
    if (asked === "missing-key") return { rule, says: "rejects", because: "missing-key" };
    return typeof asked === "string" ? { rule, says: "passes", because: asked } : { rule, says: "counts", check: asked };
  } catch (error) {
    return { rule, says: "fails", error };
  }
}

/**
 * The request of the request event that a listener is being called with: its method, route and headers. Call it before the listener awaits
 * anything. Undefined if no middleware decided, but a call of `consume`, for example.
 */
export function requestOfEvent(): RequestContext | undefined {
  return emittedRequest() as RequestContext | undefined;
}

/**
 * The rules of a request's middleware that did not check the request, and why: a part of their match, or `other`. Then the match fits,
 * and the reason is another: the client is exempt, the key is missing, the cost is 0, or another rule rejects at once.
 */
export function uncheckedRules(request: RequestContext): { readonly name: string; readonly because: Misfit | "other" }[] {
  const { version } = request.by as unknown as { readonly version: { readonly rules: CompiledRules<unknown> } };
  const fitting = new Set(version.rules.index?.find(request) ?? version.rules.http);
  return version.rules.all
    .filter(({ name }) => !request.rules.some((checked) => checked.name === name))
    .map((rule) => ({ name: rule.name, because: fitting.has(rule) ? "other" : misfitOf(rule, request) }));
}

/** The first part of a match that does not fit. */
function misfitOf<Req>({ match }: CompiledRule<Req>, request: RequestParts): Misfit {
  if (match?.descriptor !== undefined) return "descriptor";
  if (match?.methods?.has(request.method) === false) return "method";
  if (match?.paths !== undefined && match.pattern(request.path) === undefined) return "path";
  return "header";
}

/**
 * All rules that fit are checked in one step. A rule that rejects the path decides for the others; else one that fails, or one that rejects a
 * request without a key.
 */
function asWhole<Req>(explanations: Explanation<Req>[]): Explanation<Req>[] {
  const decisive =
    explanations.find((own) => own.says === "rejects" && own.because === "ambiguous-path") ??
    explanations.find(({ says }) => says === "fails") ??
    explanations.find(({ says }) => says === "rejects");
  if (decisive === undefined) return explanations;
  return explanations.map((own) =>
    own.says === "passes" || own.says === decisive.says ? own : { rule: own.rule, says: "overruled", by: decisive.rule },
  );
}
