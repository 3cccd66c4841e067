import type { FloodgateError } from "../errors.js";
import type { RuleContext } from "./compiled-rule.js";
import { attempt, tryRules } from "./compiled-rules.js";
import { compileExempt } from "./exempt.js";
import { isBuiltInKey } from "./key-source.js";
import type { Rule } from "./rule.js";
import type { RuleSet } from "./source.js";

/** The names that an app gives its rules to use. */
export interface AppNames {
  readonly keys?: readonly string[];
  readonly costs?: readonly string[];
}

/**
 * All mistakes of a version of the rules, at most one a rule, as a middleware would refuse them; `at` says where.
 * Names of keys and costs are taken to be the app's where it is not said which it has.
 */
export function checkRules(set: RuleSet, app: AppNames = {}): FloodgateError[] {
  const mistakes: FloodgateError[] = [];
  attempt(mistakes, () => compileExempt("rules", set.exempt));
  const context: RuleContext<unknown> = {
    sources: {
      keys: named(app.keys ?? set.rules.flatMap(({ key }) => key ?? []).filter(isName)),
      ip: () => undefined,
      address: () => undefined,
      path: () => "/",
      route: () => undefined,
      header: () => undefined,
    },
    costs: named(app.costs ?? set.rules.flatMap(({ cost, settle }) => [cost, settle]).filter(isName)),
    plan: () => undefined,
    exempt: [],
  };
  return [...mistakes, ...tryRules("rules", set.rules as readonly Rule<unknown, string>[], context).mistakes];
}

function isName(name: unknown): name is string {
  return typeof name === "string" && /^[A-Za-z_$][\w$.-]*$/.test(name) && !isBuiltInKey(name);
}

function named(names: readonly string[]): Readonly<Record<string, () => undefined>> {
  return Object.fromEntries(names.map((name) => [name, () => undefined]));
}
