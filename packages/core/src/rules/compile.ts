import { atPath, conflict, FloodgateError, invalidOption, shown, wrongOption } from "../support/errors.js";
import { checkOptions } from "../support/options.js";
import { CompiledRule } from "./compiled-rule.js";
import { MatchIndex } from "./match-index.js";
import { limitOptionNames, meaningWithRules, type Rule, type RuleSettings, type RulesOptions } from "./rule.js";

/** The compiled rules of a middleware, with an index to find those of a request. */
export class CompiledRules<Req> {
  readonly all: readonly CompiledRule<Req>[];
  /** The rules for HTTP requests. The others are for descriptors. */
  readonly http: readonly CompiledRule<Req>[];
  /** Finds the rules whose method, path and headers match a request. Undefined if each of `http` matches every request. */
  readonly index: MatchIndex<CompiledRule<Req>> | undefined;
  readonly allShadow: boolean;
  /** Whether a rule may reject a request for its path alone. */
  readonly mayRejectPath: boolean;
  /** Whether a limit may be 0. */
  readonly mayBeZero: boolean;
  readonly hasBans: boolean;
  /** Whether a rule may need the address of an HTTP client. */
  readonly readsAddress: boolean;
  /** Whether an enforced rule may need the address of an HTTP client. */
  readonly needsAddress: boolean;

  constructor(rules: readonly CompiledRule<Req>[]) {
    this.all = rules;
    this.http = rules.filter(({ match }) => match?.descriptor === undefined);
    this.index = this.http.some(({ match }) => match !== undefined) ? new MatchIndex(this.http) : undefined;
    this.allShadow = rules.every(({ shadow }) => shadow);
    this.mayRejectPath = rules.some(({ rejectsAmbiguousPath }) => rejectsAmbiguousPath);
    this.mayBeZero = rules.some(({ mayBeZero }) => mayBeZero);
    this.hasBans = rules.some(({ ban }) => ban !== undefined);
    this.readsAddress = this.http.some(({ readsAddress }) => readsAddress);
    this.needsAddress = this.http.some(({ readsAddress, shadow }) => readsAddress && !shadow);
  }
}

/** Options that a middleware with `rules` refuses: each rule sets its own. */
const ruleOnlyOptions = [...limitOptionNames.filter((name) => meaningWithRules[name] === "error"), "name"];
/** Options of a middleware that its `rules` have as their default. */
const sharedOptions = [...limitOptionNames.filter((name) => meaningWithRules[name] === "default"), "refundWhen"];

export function ruleOfOptions<Req>(where: string, options: RulesOptions<Req, string>, settings: RuleSettings<Req>): CompiledRule<Req> {
  return new CompiledRule(
    where,
    { ...options, name: options.name === undefined ? "default" : options.name } as Rule<Req, string>,
    settings,
  );
}

/**
 * Compiles the rules of a middleware. Its own options are the defaults of each rule.
 * @throws FloodgateError if a rule is wrong, or if the middleware sets an option that only a rule can set.
 */
export function rulesWithDefaults<Req>(
  where: string,
  options: RulesOptions<Req, string>,
  rules: readonly Rule<Req, string>[],
  settings: RuleSettings<Req>,
): CompiledRule<Req>[] {
  const beside = definedOf(options, ruleOnlyOptions);
  if (beside.length > 0) {
    throw conflict(
      `${where}: with \`rules\` each rule says its own name and limit, so \`${beside.map(([name]) => name).join("`, `")}\` cannot stand beside them. Write them in a rule: rules: [${exampleRule}].`,
    );
  }
  const shared = Object.fromEntries(definedOf(options, sharedOptions));
  const isRule = (rule: unknown): rule is object => typeof rule === "object" && rule !== null;
  const fill = (rule: object): object => {
    const filled: Record<string, unknown> = { ...shared, ...Object.fromEntries(definedOf(rule, Object.keys(rule))) };
    // The missing key of a rule with `key: "ip"` is the address itself.
    const { key = "ip", onMissingKey } = filled;
    if (onMissingKey === "ip" && key === "ip" && !("onMissingKey" in rule)) delete filled["onMissingKey"];
    return filled;
  };
  const filled = Array.isArray(rules) ? rules.map((rule) => (isRule(rule) ? fill(rule) : rule)) : rules;
  return compileRules(where, filled, settings);
}

/** The options among these that are not undefined. */
function definedOf(options: object, names: readonly string[]): [string, unknown][] {
  const values = options as Readonly<Record<string, unknown>>;
  return names.filter((name) => values[name] !== undefined).map((name) => [name, values[name]]);
}

/** A middleware stops after this many mistakes, so that thousands of wrong rules do not block the event loop. */
const maxMistakes = 100;

/**
 * @throws FloodgateError if a rule is wrong or two rules have one name: the first mistake. If there are several, `cause` is an
 * AggregateError with the first 100.
 */
export function compileRules<Req>(where: string, rules: readonly Rule<Req, string>[], settings: RuleSettings<Req>): CompiledRule<Req>[] {
  const { compiled, mistakes } = tryRules(where, rules, settings, maxMistakes);
  const [first] = mistakes;
  if (first === undefined) return compiled;
  if (mistakes.length === 1) throw first;
  throw new FloodgateError(first.code, first.message, { at: first.at, cause: new AggregateError(mistakes) });
}

/** Compiles rules, and collects at most one mistake for each rule, in order, up to `max`. */
export function tryRules<Req>(
  where: string,
  rules: readonly Rule<Req, string>[],
  settings: RuleSettings<Req>,
  max: number = Number.POSITIVE_INFINITY,
): { compiled: CompiledRule<Req>[]; mistakes: FloodgateError[] } {
  const compiled: CompiledRule<Req>[] = [];
  const mistakes: FloodgateError[] = [];
  const names = new Set<unknown>();
  if (!Array.isArray(rules) || rules.length === 0) {
    const isFile = typeof rules === "string";
    const writeRules = isFile ? `rules: await fileRules(${shown(rules)}) of @floodgate/rules` : `rules: [${exampleRule}]`;
    mistakes.push(wrongOption(where, "rules", "an array of at least one rule", rules, writeRules));
    return { compiled, mistakes };
  }
  for (const [i, rule] of rules.entries()) {
    if (mistakes.length >= max) break;
    const place = `${where}: rules[${i}]`;
    collectMistake(mistakes, () => compiled.push(atPath(["rules", i], () => compileRule(place, rule, names, settings), place)));
  }
  return { compiled, mistakes };
}

/** Runs `compile`, and collects the FloodgateError that it throws. */
export function collectMistake(mistakes: FloodgateError[], compile: () => unknown): void {
  try {
    compile();
  } catch (error) {
    if (!(error instanceof FloodgateError)) throw error;
    mistakes.push(error);
  }
}

const exampleRule = '{ name: "per-ip", key: "ip", limit: 100, window: "1m" }';

function compileRule<Req>(place: string, rule: Rule<Req, string>, names: Set<unknown>, settings: RuleSettings<Req>): CompiledRule<Req> {
  checkOptions(place, rule, ["name", "match", "headers", "grants", "refundWhen", ...limitOptionNames], exampleRule);
  if (rule.headers !== undefined && typeof rule.headers !== "boolean") {
    throw invalidOption(
      `${place}: \`headers\` of a rule says whether headers show its limit, but was ${shown(rule.headers)}. Write headers: false. Their format is an option beside \`rules\`.`,
      ["headers"],
    );
  }
  if (names.has(rule.name)) {
    throw new FloodgateError(
      "FLOODGATE_DUPLICATE_NAME",
      `${place}: the name ${shown(rule.name)} is used by an earlier rule. Give each rule its own name.`,
      { at: ["name"] },
    );
  }
  names.add(rule.name);
  const compiled = new CompiledRule(place, rule, settings);
  if (compiled.match?.descriptor !== undefined) settings.descriptors?.checkRule(place, compiled);
  return compiled;
}
