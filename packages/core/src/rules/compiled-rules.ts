import { FloodgateError, inside, shown } from "../support/errors.js";
import { checkOptions } from "../support/options.js";
import { CompiledRule } from "./compiled-rule.js";
import { MatchIndex } from "./match-index.js";
import { limitWords, type Rule } from "./rule.js";
import type { RuleContext } from "./rule-context.js";

/** One version of a middleware's rules, made ready. */
export class CompiledRules<Req> {
  readonly all: readonly CompiledRule<Req>[];
  /** Finds the rules whose method, path and headers fit a request. Undefined if every rule is for every request. */
  readonly index: MatchIndex<CompiledRule<Req>> | undefined;
  /** Whether no rule is enforced. */
  readonly areWatched: boolean;
  /** Whether a rule may need the client's address; and whether that rule is enforced. */
  readonly readAddress: boolean;
  readonly needAddress: boolean;

  constructor(rules: readonly CompiledRule<Req>[]) {
    this.all = rules;
    this.index = rules.some(({ match }) => match !== undefined) ? new MatchIndex(rules) : undefined;
    this.areWatched = rules.every(({ shadow }) => shadow);
    this.readAddress = rules.some(({ readsAddress }) => readsAddress);
    this.needAddress = rules.some(({ readsAddress, shadow }) => readsAddress && !shadow);
  }
}

/** How many mistakes a middleware looks for: a version of thousands of bad rules must not keep the event loop. */
const mostMistakes = 100;

/**
 * @throws FloodgateError where a rule is wrong or two rules have one name: the first mistake, and where several rules have one, the first
 * 100 as `cause`, an AggregateError.
 */
export function compileRules<Req>(where: string, rules: readonly Rule<Req, string>[], context: RuleContext<Req>): CompiledRule<Req>[] {
  const { compiled, mistakes } = tryRules(where, rules, context, mostMistakes);
  const [first] = mistakes;
  if (first === undefined) return compiled;
  if (mistakes.length === 1) throw first;
  throw new FloodgateError(first.code, first.message, { at: first.at, cause: new AggregateError(mistakes) });
}

/** The mistakes of a list of rules, one a rule, in their order, until there are `most`; and what could be compiled. */
export function tryRules<Req>(
  where: string,
  rules: readonly Rule<Req, string>[],
  context: RuleContext<Req>,
  most: number = Number.POSITIVE_INFINITY,
): { compiled: CompiledRule<Req>[]; mistakes: FloodgateError[] } {
  const compiled: CompiledRule<Req>[] = [];
  const mistakes: FloodgateError[] = [];
  const names = new Set<unknown>();
  attempt(mistakes, () => inside(["rules"], () => checkList(where, rules)));
  if (mistakes.length > 0) return { compiled, mistakes };
  for (const [i, rule] of rules.entries()) {
    if (mistakes.length >= most) break;
    const place = `${where}: rules[${i}]`;
    attempt(mistakes, () => compiled.push(placed(place, () => inside(["rules", i], () => compileRule(place, rule, names, context)))));
  }
  return { compiled, mistakes };
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

/** What a part of a rule says of itself (a policy, say) does not tell which rule's it is. */
function placed<T>(place: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof FloodgateError && !error.message.startsWith(place)) error.message = `${place}: ${error.message}`;
    throw error;
  }
}

function checkList(where: string, rules: unknown): void {
  if (Array.isArray(rules) && rules.length > 0) return;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`rules\` must be an array of at least one rule, but was ${shown(rules)}. Write rules: [{ name: "per-ip", key: "ip", limit: 100, window: "1m" }].`,
  );
}

function compileRule<Req>(place: string, rule: Rule<Req, string>, names: Set<unknown>, context: RuleContext<Req>): CompiledRule<Req> {
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
}
