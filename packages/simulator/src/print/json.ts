import type { Policy } from "@floodgate/core";
import { describePolicy } from "@floodgate/core/rules";
import type { Comparison } from "../compare/compare.js";
import type { RuleMeasure } from "../measure/rule-meter.js";
import type { Simulation } from "../simulate.js";
import type { Suggestion } from "../suggest/suggest.js";

/** A simulation for programs: plain data. What a rule could never know is null. */
export function simulationJson({ rules, rejected, failed, notes, ...log }: Simulation): object {
  const ruleJson = ({ name, policy, mode, by, memory, ...measure }: Simulation["rules"][number]): object => ({
    ...{ name, policy: policyJson(policy), mode, by },
    ...measureJson(measure),
    memoryBytes: memory.inMemory,
    redisBytes: memory.inRedis,
  });
  return plain({ rules: rules.map(ruleJson), rejected, failed, ...log, notes });
}

/** A comparison for programs. */
export function comparisonJson({ policies, windowMs, by, differing, notes, ...log }: Comparison): object {
  const tried = policies.map(({ text, policy, ...measure }) => ({ text, policy: policyJson(policy), ...measureJson(measure) }));
  return plain({ policies: tried, windowMs, by, differing, ...log, notes });
}

/** A suggestion for programs. */
export function suggestionJson({ rules, rates, touch, window, by, match, clients, notes, ...log }: Suggestion): object {
  return plain({
    rules: rules.map(({ algorithm, options, policy: _, need, ...measure }) => ({
      policy: { algorithm, ...options },
      need,
      ...measureJson(measure),
    })),
    rates: rates.map(({ windowMs, percentiles, most }) => ({ windowMs, percentiles: Object.fromEntries(percentiles), most })),
    ...{ touch, window, by, match, clients },
    ...log,
    notes,
  });
}

/** JSON has neither `undefined` nor Infinity, which is a lock-out that no wait ends. Both are null. */
function plain(report: object): object {
  return JSON.parse(JSON.stringify(report, (_, value) => (value === Number.POSITIVE_INFINITY ? null : (value ?? null))));
}

function policyJson(policy: Policy): object {
  return { algorithm: policy.algorithm, numbers: describePolicy(policy) };
}

function measureJson({ worstWindow, burst, topLimited, heaviest, ...figures }: RuleMeasure): object {
  const clientsLimitedShare = figures.clients === 0 ? 0 : figures.clientsLimited / figures.clients;
  return { ...figures, clientsLimitedShare, topLimited, heaviest, worstWindow, burst };
}
