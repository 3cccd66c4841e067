import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import type { Io } from "../io.js";
import { writtenKeyNames } from "../keys.js";
import { compileRules } from "../rules-in-force.js";
import { policyText, table } from "./format.js";

/** Rules in columns. */
export function rulesTable(io: Io, set: RuleSet): string {
  const compiled = compileRules(set, { ipv6Prefix: 56 });
  const rows = set.rules.map((rule, i) => {
    const policy = compiled[i]?.fixed?.policy;
    const { cost = 1, mode = "enforce" } = rule;
    return [
      rule.name,
      matchText(rule),
      writtenKeyNames(rule).join(", "),
      policy === undefined ? "" : policyText(policy),
      `${cost}`,
      mode,
      extrasText(rule),
    ];
  });
  const headings = ["rule", "matches", "by", "policy", "cost", "mode", "and"];
  const used = headings.map((_, at) => at < headings.length - 1 || rows.some((row) => row[at] !== ""));
  return table(
    io,
    headings.filter((_, at) => used[at]),
    rows.map((row) => row.filter((_, at) => used[at])),
  );
}

function matchText({ match }: PlainRule): string {
  if (match === undefined) return "every request";
  const { method, path, header, domain, descriptor } = match;
  const words = [[method ?? []].flat().join(", "), [path ?? []].flat().join(", ")];
  if (header !== undefined) words.push(`headers: ${Object.keys(header).join(", ")}`);
  if (domain !== undefined) words.push(`domain: ${[domain].flat().join(", ")}`);
  if (descriptor !== undefined) words.push(`descriptor: ${Object.keys(descriptor).join(", ")}`);
  return words.filter((word) => word !== "").join(" ");
}

function extrasText({ plans, ban, settle, exempt }: PlainRule): string {
  const words: string[] = [];
  if (plans !== undefined) words.push(`plans: ${Object.keys(plans).join(", ")}`);
  if (ban !== undefined) words.push(`ban for ${ban.for} after ${ban.after} rejections within ${ban.within}`);
  if (settle !== undefined) words.push(`settled by ${settle}`);
  if (exempt !== undefined) words.push("exemptions");
  return words.join("; ");
}
