import { type AppNames, checkRules, type PlainRule, type RuleSet, wrongOption } from "@floodgate/core/rules";
import { schemaErrors } from "./check-schema.js";
import { lintRules } from "./lint.js";
import { byPosition, inFileWords, type Path, RulesError, type RulesProblem } from "./rules-error.js";
import { readYaml } from "./yaml.js";

/** Valid rules, with the positions of their parts. */
export interface ReadRules {
  readonly rules: RuleSet;
  /** A problem at the position of a path. */
  problemAt(path: Path, message: string): RulesProblem;
}

/**
 * Parses and checks rules written in YAML or JSON.
 * @param file how error messages name the text. Default `"rules"`.
 * @param app the keys and costs that the app defines, as lists of names or as the objects that `rateLimit` takes. If left out, rules may
 * use any name.
 * @throws RulesError with all problems in the text; another FloodgateError if `app` is invalid.
 * @example
 * parseRules(await readFile("limits.yaml", "utf8"), "limits.yaml", { keys: ["user"] });
 */
export function parseRules(text: string, file = "rules", app: AppNames = {}): RuleSet {
  if (typeof text === "string") return readRules(text, file, app).rules;
  throw wrongOption("parseRules", "text", "a string of YAML or JSON", text, 'parseRules(await readFile("limits.yaml", "utf8"))');
}

/**
 * Parses and checks rules, and keeps their positions for problems that are found later.
 * @throws RulesError with all problems.
 */
export function readRules(text: string, file: string, app: AppNames = {}): ReadRules {
  const checked = checkText(text, Number.POSITIVE_INFINITY, app);
  if ("problems" in checked) throw new RulesError(file, checked.problems);
  return checked;
}

/** The first problems of a text, and how many more it has. */
export interface InvalidText {
  readonly problems: readonly RulesProblem[];
  readonly more: number;
}

/**
 * Parses a text, or finds its problems: YAML syntax first, then the schema, then what the rules mean.
 * @param maxProblems how many problems are explained, in the order of their positions. If the schema alone finds as many, the meaning
 * is not checked.
 */
export function checkText(text: string, maxProblems: number, app: AppNames = {}): ReadRules | InvalidText {
  const { value, problems: syntax, problemAt, problemAtKey } = readYaml(text);
  if (syntax.length > 0) return firstOf(syntax, maxProblems);
  const errors = schemaErrors(value);
  const problems: LazyProblem[] = errors.map(({ explain, path, isKey }) => ({
    ...(isKey ? problemAtKey : problemAt)(path, ""),
    message: explain,
  }));
  if (problems.length >= maxProblems) return firstOf(problems, maxProblems);

  const wrong = new Set(errors.map(({ path }) => unitOf(path)));
  if (!wrong.has("") && !wrong.has("rules")) {
    // Each rule with the right shape is checked for its meaning, even if another rule is wrong.
    const check = (find: (set: RuleSet) => readonly { readonly at: Path; readonly message: string }[]): void => {
      for (const { at, message } of find(withoutWrong(wrong, value as RuleSet))) {
        problems.push(problemAt(at, inFileWords(message)));
        wrong.add(unitOf(at));
      }
    };
    check((set) => checkRules(set, app));
    check(lintRules);
  }
  if (problems.length > 0) return firstOf(problems, maxProblems);
  return { rules: withoutWrong(wrong, value as RuleSet), problemAt };
}

/** A problem whose message may not be made yet. */
interface LazyProblem extends Omit<RulesProblem, "message"> {
  readonly message: string | (() => string);
}

function firstOf(found: readonly LazyProblem[], max: number): InvalidText {
  const problems = [...found]
    .sort(byPosition)
    .slice(0, max)
    .map((problem) => ({ ...problem, message: typeof problem.message === "string" ? problem.message : problem.message() }));
  return { problems, more: found.length - problems.length };
}

/** The unit that a path belongs to and that is checked on its own: one rule, the global `exempt`, or the list of rules. */
function unitOf([list, index]: Path): string {
  return index === undefined || list !== "rules" ? `${list ?? ""}` : `rules ${index}`;
}

/** The rules with a valid placeholder for each wrong one, so that the others keep their index. */
function withoutWrong(wrong: ReadonlySet<string>, { rules, exempt }: RuleSet): RuleSet {
  const valid = rules.map((rule, i): PlainRule => {
    if (!wrong.has(`rules ${i}`)) return rule;
    const { name } = (rule ?? {}) as { name?: unknown };
    return { name: typeof name === "string" ? name : `rules[${i}]`, limit: 1, window: "1s" };
  });
  return exempt === undefined || wrong.has("exempt") ? { rules: valid } : { rules: valid, exempt };
}
