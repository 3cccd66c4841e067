import { FloodgateError, inside, shown } from "../errors.js";
import { checkOptions } from "../options.js";
import { CompiledRule, type RuleContext } from "./compiled-rule.js";
import { limitWords, type Rule } from "./rule.js";
import { type RequestParts, RuleIndex } from "./rule-index.js";

/** One version of a middleware's rules, made ready. */
export class CompiledRules<Req> {
  readonly all: readonly CompiledRule<Req>[];
  /** Undefined where every rule is for every request. */
  readonly #index: RuleIndex | undefined;

  constructor(rules: readonly CompiledRule<Req>[]) {
    this.all = rules;
    if (rules.some(({ match }) => match !== undefined)) this.#index = new RuleIndex(rules.map(({ match }) => match));
  }

  /** The rules whose method, path and headers fit a request, in their order. */
  find(request: Req, reader: RequestParts<Req>): readonly CompiledRule<Req>[] {
    if (this.#index === undefined) return this.all;
    return this.#index.find(request, reader).map((place) => this.all[place] as CompiledRule<Req>);
  }
}

/** @throws FloodgateError where a rule is wrong or two rules have one name. */
export function compileRules<Req>(where: string, rules: readonly Rule<Req, string>[], context: RuleContext<Req>): CompiledRule<Req>[] {
  return inside(["rules"], () => {
    checkList(where, rules);
    const names = new Set<unknown>();
    return rules.map((rule, i) => compileRule(where, rule, i, names, context));
  });
}

/** All mistakes of a list of rules, one a rule, in their order. */
export function mistakesOf<Req>(where: string, rules: readonly Rule<Req, string>[], context: RuleContext<Req>): FloodgateError[] {
  const mistakes: FloodgateError[] = [];
  const names = new Set<unknown>();
  attempt(mistakes, () => inside(["rules"], () => checkList(where, rules)));
  if (mistakes.length > 0) return mistakes;
  rules.forEach((rule, i) => {
    attempt(mistakes, () => inside(["rules"], () => compileRule(where, rule, i, names, context)));
  });
  return mistakes;
}

/** Adds the mistake that making something turns out to be, if it is one. */
export function attempt(mistakes: FloodgateError[], make: () => unknown): void {
  try {
    make();
  } catch (error) {
    if (!(error instanceof FloodgateError)) throw error;
    mistakes.push(error);
  }
}

function checkList(where: string, rules: unknown): void {
  if (Array.isArray(rules) && rules.length > 0) return;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`rules\` must be an array of at least one rule, but was ${shown(rules)}. Write rules: [{ name: "per-ip", key: "ip", limit: 100, window: "1m" }].`,
  );
}

function compileRule<Req>(
  where: string,
  rule: Rule<Req, string>,
  i: number,
  names: Set<unknown>,
  context: RuleContext<Req>,
): CompiledRule<Req> {
  const place = `${where}: rules[${i}]`;
  return inside([i], () => {
    checkOptions(place, rule, ["name", "match", ...limitWords], '{ name: "per-ip", key: "ip", limit: 100, window: "1m" }');
    if (names.has(rule.name)) {
      throw new FloodgateError(
        "FLOODGATE_DUPLICATE_NAME",
        `${place}: the name ${shown(rule.name)} stands for an earlier rule already. Give each rule its own.`,
        { at: ["name"] },
      );
    }
    names.add(rule.name);
    return new CompiledRule(place, rule, context);
  });
}
