import { FloodgateError } from "@floodgate/core";
import { type AppNames, checkRules, type PlainRule, type RuleSet } from "@floodgate/core/rules";
import { slipsOf } from "./meaning.js";
import { mistakesOf } from "./messages.js";
import { byPlace, type Path, RulesError, type RulesProblem } from "./problems.js";
import { readYaml } from "./yaml.js";

/** Rules that have been read, and where each part of them stands. */
export interface ReadRules {
  readonly rules: RuleSet;
  problemAt(path: Path, message: string): RulesProblem;
}

/**
 * The rules that a text of YAML (or JSON) says.
 * `file` is how problems name the text; `app`, which keys and costs there are for rules to name, as lists of names or as the objects that
 * `rateLimit` takes; any where it does not say.
 * @throws RulesError with all that is wrong in it; another FloodgateError where `app` is none.
 */
export function parseRules(text: string, file = "rules", app: AppNames = {}): RuleSet {
  if (typeof text !== "string") {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `parseRules takes a text of YAML or JSON, but was given ${text === null ? "null" : typeof text}.`,
    );
  }
  return readRules(text, file, app).rules;
}

/**
 * Rules and their places, for what is found wrong with them later.
 * @throws RulesError with all problems.
 */
export function readRules(text: string, file: string, app: AppNames = {}): ReadRules {
  const read = judgeText(text, Number.POSITIVE_INFINITY, app);
  if ("problems" in read) throw new RulesError(file, read.problems);
  return read;
}

/** The first problems of a text, and how many more were found. */
export interface Refused {
  readonly problems: readonly RulesProblem[];
  readonly more: number;
}

/**
 * Reads a text, or finds what is wrong with it.
 * @param mostProblems how many problems are explained: the first in the order of their places. Where the shape has as many, what the
 * rules mean is not judged.
 */
export function judgeText(text: string, mostProblems: number, app: AppNames = {}): ReadRules | Refused {
  const { value, problems: syntax, problemAt, problemAtWord } = readYaml(text);
  if (syntax.length > 0) return firstOf(syntax, mostProblems);
  const mistakes = mistakesOf(value);
  const problems: Unexplained[] = mistakes.map(({ explain, path, word }) => ({
    ...(word ? problemAtWord : problemAt)(path, ""),
    message: explain,
  }));
  if (problems.length >= mostProblems) return firstOf(problems, mostProblems);

  const wrong = new Set(mistakes.map(({ path }) => wholeOf(path)));
  if (!wrong.has("") && !wrong.has("rules")) {
    // What has the right shape is judged for what it means, whatever else is wrong.
    const judge = (find: (set: RuleSet) => readonly { readonly at: Path; readonly message: string }[]): void => {
      for (const { at, message } of find(without(wrong, value as RuleSet))) {
        // Where it stands is said before it.
        problems.push(problemAt(at, message.replace(/^rules: /, "")));
        wrong.add(wholeOf(at));
      }
    };
    judge((set) => checkRules(set, app));
    judge(slipsOf);
  }
  if (problems.length > 0) return firstOf(problems, mostProblems);
  return { rules: without(wrong, value as RuleSet), problemAt };
}

/** A problem whose message is perhaps still to be made. */
interface Unexplained extends Omit<RulesProblem, "message"> {
  readonly message: string | (() => string);
}

function firstOf(found: readonly Unexplained[], most: number): Refused {
  const problems = [...found]
    .sort(byPlace)
    .slice(0, most)
    .map((problem) => ({ ...problem, message: typeof problem.message === "string" ? problem.message : problem.message() }));
  return { problems, more: found.length - problems.length };
}

/** What a path is a part of: one of the rules, the `exempt` of all, or the list of rules. */
function wholeOf([list, index]: Path): string {
  return index === undefined || list !== "rules" ? `${list ?? ""}` : `rules ${index}`;
}

/** The rules, with something harmless where one is wrong, so that the others keep their places. */
function without(wrong: ReadonlySet<string>, { rules, exempt }: RuleSet): RuleSet {
  const sound = rules.map((rule, i): PlainRule => {
    if (!wrong.has(`rules ${i}`)) return rule;
    const { name } = (rule ?? {}) as { name?: unknown };
    return { name: typeof name === "string" ? name : `rules[${i}]`, limit: 1, window: "1s" };
  });
  return exempt === undefined || wrong.has("exempt") ? { rules: sound } : { rules: sound, exempt };
}
