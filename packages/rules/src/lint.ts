import type { PolicyOptions } from "@floodgate/core";
import { compilePlans, containEveryAddress, type PlainRule, type RuleSet, toPolicy } from "@floodgate/core/rules";
import type { Path } from "./rules-error.js";

/** A rule that does nothing, or rejects every request. */
interface LintError {
  readonly at: Path;
  readonly message: string;
}

/** Finds rules that are allowed in code but can only be a mistake in a file. */
export function lintRules({ rules, exempt }: RuleSet): LintError[] {
  return [
    ...exemptErrors("exempt", exempt, []),
    ...rules.flatMap((rule, i) => {
      const where = `rules[${i}]`;
      const at = ["rules", i];
      return [...headerErrors(where, rule, at), ...exemptErrors(`${where}: exempt`, rule.exempt, at), ...costErrors(where, rule, at)];
    }),
  ];
}

function* headerErrors(where: string, { match }: PlainRule, at: Path): Generator<LintError> {
  const seen = new Map<string, string>();
  for (const name of Object.keys(match?.header ?? {})) {
    const earlier = seen.get(name.toLowerCase());
    seen.set(name.toLowerCase(), name);
    if (earlier === undefined) continue;
    const message = `${where}: \`match.header\` has both ${earlier} and ${name}, which are the same header: case does not matter. Write it once, with a list of values.`;
    yield { message, at: [...at, "match", "header", name] };
  }
}

function* exemptErrors(where: string, exempt: PlainRule["exempt"], at: Path): Generator<LintError> {
  const ranges = exempt?.ips ?? [];
  const ipsAt = [...at, "exempt", "ips"];
  const effect = "so no client would be counted. Write a narrower range, or remove the rule.";
  const alone = [...ranges.entries()].filter(([, range]) => containEveryAddress([range]));
  for (const [i, range] of alone) yield { message: `${where}: ${range} contains every client, ${effect}`, at: [...ipsAt, i] };
  if (alone.length === 0 && containEveryAddress(ranges))
    yield { message: `${where}: these ranges together contain every client, ${effect}`, at: ipsAt };
}

function* costErrors(where: string, rule: PlainRule, at: Path): Generator<LintError> {
  const { cost } = rule;
  if (typeof cost !== "number") return;
  const costAt = [...at, "cost"];
  if (cost === 0) {
    yield { message: `${where}: a rule with a \`cost\` of 0 counts nothing. Write cost: 1, or remove the rule.`, at: costAt };
    return;
  }
  const { limit, window } = rule;
  const options = rule.policy ?? ({ algorithm: "sliding-window-counter", limit, window } as PolicyOptions);
  const policy = toPolicy(where, options);
  const plans = rule.plans === undefined ? [] : [...compilePlans(where, rule.plans, policy)];
  const policies = [["", policy] as const, ...plans.map(([plan, own]) => [` of plan ${JSON.stringify(plan)}`, own] as const)];
  for (const [owner, { quota }] of policies) {
    // A limit of 0 is meant to reject everything.
    if (cost <= quota || quota === 0) continue;
    const message = `${where}: a \`cost\` of ${cost} is above the limit${owner}, ${quota}, so every request would be rejected. Lower the cost or raise the limit.`;
    yield { message, at: costAt };
  }
}
