import { type FloodgateError, kindOf, wrongOption } from "../support/errors.js";
import { checkOptions } from "../support/options.js";
import { collectMistake, tryRules } from "./compile.js";
import { descriptorRules } from "./descriptor-rule.js";
import { compileExempt } from "./exempt.js";
import { isBuiltInKey, parseKeyName } from "./key-source.js";
import type { Rule, RuleSet, RuleSettings } from "./rule.js";
import { KeyDigests } from "./secret-keys.js";

/** A list of names, or an object with a property for each, as `rateLimit` takes it. */
type Names = readonly string[] | Readonly<Record<string, unknown>>;

/** The keys and costs that an app defines, for its rules to name. */
export interface AppNames {
  readonly keys?: Names;
  readonly costs?: Names;
}

/**
 * Finds the mistakes for which a middleware would refuse these rules: at most one for each rule. `at` is the path to it.
 * If `app` lists no keys or costs, rules may use any name.
 * @throws FloodgateError if `app` is invalid.
 */
export function checkRules(set: RuleSet, app: AppNames = {}): FloodgateError[] {
  checkOptions("`app`", app, ["keys", "costs"], '{ keys: ["user"], costs: ["items"] }');
  const mistakes: FloodgateError[] = [];
  collectMistake(mistakes, () => compileExempt("rules", set.exempt));
  const settings: RuleSettings<unknown> = {
    keys: named(
      "keys",
      app.keys ??
        set.rules
          .flatMap(({ key }) => key ?? [])
          .map((name) => (typeof name === "string" ? parseKeyName(name).name : name))
          .filter(isName),
    ),
    costs: named("costs", app.costs ?? set.rules.flatMap(({ cost, settle }) => [cost, settle]).filter(isName)),
    hasPlan: true,
    ipv6Prefix: 56,
    digests: new KeyDigests(),
    exempt: [],
    descriptors: descriptorRules,
    checkRule: undefined,
    cost: headerCost,
    warn: () => undefined,
  };
  return [...mistakes, ...tryRules("rules", set.rules as readonly Rule<unknown, string>[], settings).mistakes];
}

function isName(name: unknown): name is string {
  return typeof name === "string" && /^[A-Za-z_$][\w$.-]*$/.test(name) && !isBuiltInKey(name);
}

function named(option: keyof AppNames, names: Names): Readonly<Record<string, () => undefined>> {
  const list = kindOf(names) === "Object" ? Object.keys(names) : names;
  if (Array.isArray(list) && list.every((name) => typeof name === "string")) {
    return Object.fromEntries(list.map((name) => [name, () => undefined]));
  }
  const example = `${option}: [${option === "keys" ? '"user"' : '"items"'}]`;
  throw wrongOption("`app`", option, "a list of names, or an object with a property for each", names, example);
}

/** A header of a response that only floodgate gateway sees. Here nothing is settled. */
export function headerCost(name: string): (() => undefined) | undefined {
  return name.startsWith("header:") ? () => undefined : undefined;
}
