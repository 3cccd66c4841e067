import { FloodgateError } from "@floodgate/core";
import { type Explanation, type PlainRule, type RuleSet, whyNot } from "@floodgate/core/rules";
import type { CliRequest } from "../app.js";
import { type Io, paint } from "../io.js";
import { fallsBackToIp, isAppKey, keyNames, writtenKeyNames } from "../keys.js";
import { policyText, table } from "./format.js";
import { sanitize } from "./terminal.js";

/** Whether and how a rule counts a request, as printed. */
export interface ExplainedRule {
  readonly rule: string;
  readonly counts: boolean;
  /** The rule's `key`, as written in the rules. */
  readonly by: string;
  /** If it counts: the key, the policy, and the units (or the name of the app's cost). */
  readonly key?: string;
  readonly policy?: string;
  readonly cost?: number | string;
  readonly mode: "enforce" | "shadow";
  /** If it does not count. */
  readonly why?: string;
}

export function explained(set: RuleSet, explanations: readonly Explanation<CliRequest>[]): ExplainedRule[] {
  return explanations.map((explanation, i): ExplainedRule => {
    const plain = set.rules[i] as PlainRule;
    const { name, shadow } = explanation.rule;
    const common = {
      rule: name,
      counts: explanation.says === "counts",
      by: writtenKeyNames(plain).join(", "),
      mode: shadow ? "shadow" : "enforce",
    } as const;
    if (explanation.says !== "counts") return { ...common, why: why(plain, explanation) };
    const { key, limit, cost } = explanation.check;
    return { ...common, key, policy: policyText(limit.policy), cost: typeof plain.cost === "string" ? plain.cost : cost };
  });
}

export function explanationText(io: Io, request: string, rules: readonly ExplainedRule[]): string {
  const counting = rules.filter(({ counts }) => counts);
  const others = rules.filter(({ counts }) => !counts);
  const parts: string[] = [];
  if (counting.length > 0) {
    const rows = counting.map(({ rule, by, key, policy, cost, mode }) => [rule, by, `${key}`, `${policy}`, `${cost}`, mode]);
    parts.push(
      `${paint(io, "bold", `${sanitize(request)} is counted by`)}\n${table(io, ["rule", "by", "key", "policy", "cost", "mode"], rows)}`,
    );
  }
  if (others.length > 0) {
    const rows = others.map(({ rule, why }) => [rule, `${why}`]);
    const heading = counting.length > 0 ? "and not by" : `${sanitize(request)} is counted by no rule`;
    parts.push(`${paint(io, "bold", heading)}\n${table(io, ["rule", "why"], rows)}`);
  }
  return parts.join("\n");
}

/** Why a rule does not count a request. */
export function why(rule: PlainRule, explanation: Exclude<Explanation<CliRequest>, { says: "counts" }>): string {
  return whyNot(rule, explanation, (error) => {
    const isAddress = error instanceof FloodgateError && error.code === "FLOODGATE_NO_CLIENT_IP";
    return `${hint(rule)}${isAddress && fallsBackToIp(rule) && !keyNames(rule).includes("ip") ? " or --ip ..." : ""}`;
  });
}

/** The options that give a request the rule's key. */
function hint(rule: PlainRule): string {
  return keyNames(rule)
    .filter((name) => name !== "global")
    .map((name) => {
      if (isAppKey(name)) return `--key ${name}=...`;
      return name.startsWith("header:") ? `--header "${name.slice("header:".length)}: ..."` : `--${name} ...`;
    })
    .join(" ");
}
