import { FloodgateError } from "@floodgate/core";
import type { Explanation, Misfit, PlainRule, RuleSet } from "@floodgate/core/rules";
import { type AskedRequest, fallsBackToIp, isOwnKey, keyNames, markedKeyNames } from "../app.js";
import { type Io, paint } from "../io.js";
import { table } from "./table.js";
import { harmless } from "./terminal.js";
import { policyWords } from "./words.js";

/** What a rule says of a request, in words. */
export interface ExplainedRule {
  readonly rule: string;
  readonly counts: boolean;
  /** What it counts by, as the rules say it. */
  readonly by: string;
  /** Where it counts: whom, by which policy, how many units (or what the app calls them). */
  readonly key?: string;
  readonly policy?: string;
  readonly cost?: number | string;
  readonly mode: "enforce" | "shadow";
  /** Where it does not. */
  readonly why?: string;
}

export function explained(set: RuleSet, explanations: readonly Explanation<AskedRequest>[]): ExplainedRule[] {
  return explanations.map((explanation, i): ExplainedRule => {
    const plain = set.rules[i] as PlainRule;
    const { name, shadow } = explanation.rule;
    const said = {
      rule: name,
      counts: explanation.says === "counts",
      by: markedKeyNames(plain).join(", "),
      mode: shadow ? "shadow" : "enforce",
    } as const;
    if (explanation.says !== "counts") return { ...said, why: why(plain, explanation) };
    const { key, limit, cost } = explanation.check;
    return { ...said, key, policy: policyWords(limit.policy), cost: typeof plain.cost === "string" ? plain.cost : cost };
  });
}

export function explanationText(io: Io, request: string, rules: readonly ExplainedRule[]): string {
  const applying = rules.filter(({ counts }) => counts);
  const others = rules.filter(({ counts }) => !counts);
  const parts: string[] = [];
  if (applying.length > 0) {
    const rows = applying.map(({ rule, by, key, policy, cost, mode }) => [rule, by, `${key}`, `${policy}`, `${cost}`, mode]);
    parts.push(
      `${paint(io, "bold", `${harmless(request)} counts for`)}\n${table(io, ["rule", "by", "key", "policy", "cost", "mode"], rows)}`,
    );
  }
  if (others.length > 0) {
    const rows = others.map(({ rule, why }) => [rule, `${why}`]);
    const heading = applying.length > 0 ? "and not for" : `${harmless(request)} counts for no rule`;
    parts.push(`${paint(io, "bold", heading)}\n${table(io, ["rule", "why"], rows)}`);
  }
  return parts.join("\n");
}

function why(rule: PlainRule, explanation: Exclude<Explanation<AskedRequest>, { says: "counts" }>): string {
  switch (explanation.says) {
    case "passes":
      return reasons[explanation.because](rule);
    case "rejects":
      return `no key (${hint(rule)}), so that it is answered 429 (onMissingKey: reject)`;
    case "fails":
      return failure(rule, explanation.error);
    case "overruled":
      return `${explanation.by.name} decides for the whole request`;
  }
}

const reasons: Readonly<Record<Misfit, (rule: PlainRule) => string>> = {
  method: ({ match }) => `method: it is for ${[match?.method].flat().join(", ")}`,
  path: ({ match }) => `path: it is for ${[match?.path].flat().join(", ")}`,
  header: ({ match }) =>
    `header: it is for ${Object.entries(match?.header ?? {})
      .map(headerWords)
      .join(", ")}`,
  exempt: () => "exempt",
  free: () => "its cost is 0",
  "no-match": () => "its match function says no",
  "watched-fault": () => "it fails, and passes because of mode: shadow",
  "no-key": (rule) => `no key (${hint(rule)}), so that it passes (${rule.mode === "shadow" ? "mode: shadow" : "onMissingKey: skip"})`,
};

function headerWords([name, value]: [string, string | readonly string[] | boolean]): string {
  if (typeof value === "boolean") return value ? `any ${name}` : `no ${name}`;
  return `${name}: ${[value].flat().join(" or ")}`;
}

function failure(rule: PlainRule, error: unknown): string {
  const { code, message } = error as FloodgateError;
  const missing =
    error instanceof FloodgateError && ["FLOODGATE_MISSING_KEY", "FLOODGATE_NO_CLIENT_IP", "FLOODGATE_NO_ROUTE"].includes(code);
  const address = code === "FLOODGATE_NO_CLIENT_IP" && fallsBackToIp(rule) && !keyNames(rule).includes("ip") ? " or --ip ..." : "";
  return missing ? `no key (${hint(rule)}${address}), so that it is an error of the app (${code})` : message;
}

/** How the command line gives what the rule counts by. */
function hint(rule: PlainRule): string {
  return keyNames(rule)
    .filter((name) => name !== "global")
    .map((name) => {
      if (isOwnKey(name)) return `--key ${name}=...`;
      return name.startsWith("header:") ? `--header "${name.slice("header:".length)}: ..."` : `--${name} ...`;
    })
    .join(" ");
}
