import { isDeepStrictEqual } from "node:util";
import { type Path, parseRules, RulesError, type RulesProblem, readYaml } from "@floodgate/rules";

type App = Parameters<typeof parseRules>[2];

/** A part of a file that is checked up to its first mistake: a rule, or the global `exempt`. */
interface Unit {
  readonly path: Path;
  /** The path of the part in the file that `alone` makes. */
  readonly pathAlone: Path;
  alone(part: unknown): unknown;
}

type Found = Pick<RulesProblem, "path" | "message">;

/** From this number of problems on, no further ones are looked for. */
const enough = 100;

/** Values that some options accept. A wrong value is replaced by them, to see what else is wrong. */
const substitutes = [1, 1000, "1s", "1m", "/", "10.0.0.1"];

/**
 * Finds the mistakes behind the first one of each part of a file: puts valid values in place of the wrong ones, and checks again.
 * @returns all problems, with those that were given.
 */
export function withFurtherProblems(text: string, given: readonly RulesProblem[], app: App): readonly RulesProblem[] {
  if (given.some(({ path }) => path.length === 0)) return given;
  const { value, problemAt } = readYaml(text);
  const units = new Map(given.flatMap(({ path }) => unitOf(path) ?? []).map((unit) => [JSON.stringify(unit.path), unit]));
  const all = new Map(given.map((problem) => [idOf(problem), problem]));
  // JSON has no NaN, so the message of a part alone may differ from the given one.
  const known = new Set(given.map(({ path }) => JSON.stringify(path)));
  for (const unit of units.values()) {
    if (all.size >= enough) break;
    for (const { path, message } of problemsOf(unit, valueAt(value, unit.path), app)) {
      if (!known.has(JSON.stringify(path))) all.set(idOf({ path, message }), problemAt(path, message));
    }
  }
  return [...all.values()].sort((a, b) => a.line - b.line || a.column - b.column);
}

const idOf = ({ path, message }: Found): string => JSON.stringify([path, message]);

function unitOf([list, index]: Path): Unit | undefined {
  if (list === "exempt") {
    const rules = [{ name: "a", limit: 1, window: "1s" }];
    return { path: [list], pathAlone: [list], alone: (exempt) => ({ exempt, rules }) };
  }
  if (index === undefined) return undefined;
  return { path: ["rules", index], pathAlone: ["rules", 0], alone: (rule) => ({ rules: [rule] }) };
}

function problemsOf(unit: Unit, part: unknown, app: App): readonly Found[] {
  const all = new Map<string, Found>();
  const repaired: Path[] = [];
  let variants: readonly unknown[] = [part];
  for (;;) {
    const [problems = [], ...others] = variants.map((variant) => problemsAlone(unit, variant, app));
    const [next] = problems;
    if (next === undefined || all.size >= enough) return [...all.values()];
    const ids = others.map((found) => new Set(found.map(idOf)));
    for (const problem of problems) {
      // What follows from a replaced value is no mistake of the file.
      const isReal = !repaired.some((path) => areRelated(path, problem.path)) && ids.every((others) => others.has(idOf(problem)));
      if (isReal) all.set(idOf(problem), problem);
    }
    const repair = repairAt(unit, variants[0], next.path, app);
    // The same twice: the repair shows only once the rest of the part is right.
    if (repair === undefined || repaired.filter((path) => isDeepStrictEqual(path, repair.path)).length > 1) return [...all.values()];
    repaired.push(repair.path);
    variants = repair.variants;
  }
}

/** The part with other values at the path, or nearest above it, where these have no problem. */
function repairAt(unit: Unit, part: unknown, path: Path, app: App): { path: Path; variants: readonly unknown[] } | undefined {
  if (path.length <= unit.path.length) return undefined;
  const isRight = (variant: unknown): boolean => !problemsAlone(unit, variant, app).some((problem) => areRelated(problem.path, path));
  const variants = [...substitutes, undefined].map((value) => replaced(part, path.slice(unit.path.length), value)).filter(isRight);
  return variants.length > 0 ? { path, variants } : repairAt(unit, part, path.slice(0, -1), app);
}

/** The problems of a part as they are in the file. */
function problemsAlone({ path: own, pathAlone, alone }: Unit, part: unknown, app: App): readonly Found[] {
  try {
    parseRules(JSON.stringify(alone(part)), "", app);
    return [];
  } catch (error) {
    if (!(error instanceof RulesError)) throw error;
    return error.problems.map(({ path, message }) => ({
      path: [...own, ...path.slice(pathAlone.length)],
      message: message.replace(/^rules\[0\]/, () => `rules[${own[1]}]`),
    }));
  }
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce((inside, part) => (inside as Record<string, unknown> | undefined)?.[part], value);
}

/** A copy with another value at a path; undefined removes it. */
function replaced(value: unknown, [part, ...rest]: Path, by: unknown): unknown {
  if (part === undefined) return by;
  if (typeof value !== "object" || value === null) return value;
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [...value] : { ...value };
  const inside = replaced((value as Record<string, unknown>)[part], rest, by);
  (copy as Record<string, unknown>)[part] = inside;
  return copy;
}

/** Whether one path leads to the other, or to a part of it. */
function areRelated(a: Path, b: Path): boolean {
  const length = Math.min(a.length, b.length);
  return a.slice(0, length).every((part, i) => part === b[i]);
}
