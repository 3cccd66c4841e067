import type { PolicyOptions } from "@floodgate/core";
import { compilePlans, holdEverybody, type PlainRule, type RuleSet, toPolicy } from "@floodgate/core/rules";
import type { Path } from "./problems.js";

interface Slip {
  readonly at: Path;
  readonly message: string;
}

/** What is allowed in code, where it may have its reasons, and can only be a slip in a file: rules that do nothing, or reject everything. */
export function slipsOf({ rules, exempt }: RuleSet): Slip[] {
  return [
    ...everybody("exempt", exempt, []),
    ...rules.flatMap((rule, i) => {
      const where = `rules[${i}]`;
      const at = ["rules", i];
      return [...contradictions(where, rule, at), ...everybody(`${where}: exempt`, rule.exempt, at), ...costs(where, rule, at)];
    }),
  ];
}

function* contradictions(where: string, { match }: PlainRule, at: Path): Generator<Slip> {
  const seen = new Map<string, string>();
  for (const name of Object.keys(match?.header ?? {})) {
    const earlier = seen.get(name.toLowerCase());
    seen.set(name.toLowerCase(), name);
    if (earlier === undefined) continue;
    const message = `${where}: \`match.header\` names one header twice, as ${earlier} and as ${name}: both would have to fit. Case makes no difference; give a list of values.`;
    yield { message, at: [...at, "match", "header", name] };
  }
}

function* everybody(where: string, exempt: PlainRule["exempt"], at: Path): Generator<Slip> {
  const ranges = exempt?.ips ?? [];
  const ipsAt = [...at, "exempt", "ips"];
  const soThat = "so that nobody would be counted. Write a narrower range, or take the rule away.";
  const alone = [...ranges.entries()].filter(([, range]) => holdEverybody([range]));
  for (const [i, range] of alone) yield { message: `${where}: ${range} holds everybody, ${soThat}`, at: [...ipsAt, i] };
  if (alone.length === 0 && holdEverybody(ranges))
    yield { message: `${where}: these ranges together hold everybody, ${soThat}`, at: ipsAt };
}

function* costs(where: string, rule: PlainRule, at: Path): Generator<Slip> {
  const { cost } = rule;
  if (typeof cost !== "number") return;
  const costAt = [...at, "cost"];
  if (cost === 0) {
    yield { message: `${where}: with a \`cost\` of 0 the rule counts nothing. Write cost: 1, or take the rule away.`, at: costAt };
    return;
  }
  const { limit, window } = rule;
  const options = rule.policy ?? ({ algorithm: "sliding-window-counter", limit, window } as PolicyOptions);
  const policy = toPolicy(where, options);
  const plans = rule.plans === undefined ? [] : [...compilePlans(where, rule.plans, policy)];
  const policies = [["", policy] as const, ...plans.map(([plan, own]) => [` of plan ${JSON.stringify(plan)}`, own] as const)];
  for (const [whose, { quota }] of policies) {
    // A limit of 0 is there to reject everything.
    if (cost <= quota || quota === 0) continue;
    const message = `${where}: a \`cost\` of ${cost} is above the limit${whose}, ${quota}, so that every request would be rejected. Lower the cost or raise the limit.`;
    yield { message, at: costAt };
  }
}
