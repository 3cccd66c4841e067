import type { Policy } from "@floodgate/core";
import { describePolicy } from "@floodgate/core/rules";
import type { Comparison } from "../compare/compare.js";
import type { RuleMeasure } from "../measure/rule-meter.js";
import type { LogSummary, Simulation } from "../simulate.js";
import type { Suggestion } from "../suggest/suggest.js";

/** A simulation for programs: plain data. What a rule could never know is null. */
export function simulationJson({ rules, rejected, failed, notes, ...log }: Simulation): object {
  const ruleJson = ({ name, policy, mode, by, memory, ...measure }: Simulation["rules"][number]): object => ({
    name,
    policy: policyJson(policy),
    mode,
    by,
    ...measureJson(measure),
    memoryBytes: memory.inMemory,
    redisBytes: memory.inRedis,
  });
  return { rules: rules.map(ruleJson), rejected, failed, ...logJson(log), notes };
}

/** A comparison for programs. */
export function comparisonJson({ policies, windowMs, by, differing, notes, ...log }: Comparison): object {
  return {
    policies: policies.map(({ text, policy, ...measure }) => ({ text, policy: policyJson(policy), ...measureJson(measure) })),
    windowMs,
    by,
    differing,
    ...logJson(log),
    notes,
  };
}

/** A suggestion for programs. */
export function suggestionJson({ rules, rates, touch, window, by, match, clients, notes, ...log }: Suggestion): object {
  return {
    rules: rules.map(({ algorithm, options, policy: _, need, ...measure }) => ({
      policy: { algorithm, ...options },
      need: { ...need, high: need.high ?? null },
      ...measureJson(measure),
    })),
    rates: rates.map(({ windowMs, percentiles, most }) => ({
      windowMs,
      percentiles: Object.fromEntries(
        [...percentiles].map(([name, found]) => [name, found ? { ...found, high: found.high ?? null } : null]),
      ),
      most,
    })),
    touch,
    window,
    by,
    match: match ?? null,
    clients,
    ...logJson(log),
    notes,
  };
}

function logJson({ firstMs = null, lastMs = null, ...log }: { readonly [Name in keyof LogSummary]: LogSummary[Name] | null }): object {
  return { ...log, firstMs, lastMs };
}

function policyJson(policy: Policy): object {
  return { algorithm: policy.algorithm, numbers: describePolicy(policy) };
}

/** Lock-outs that no wait ends are null: JSON has no Infinity. */
function measureJson(measure: RuleMeasure): object {
  const { worstWindow, burst, topLimited, heaviest, ...figures } = measure;
  const clientJson = (client: RuleMeasure["heaviest"][number]): object => ({ ...client, ...lockoutJson(client) });
  const peakJson = ({ key = null, atMs = null, ...peak }: { key?: unknown; atMs?: unknown }): object => ({ ...peak, key, atMs });
  return {
    ...figures,
    ...lockoutJson(measure),
    clientsLimitedShare: measure.clients === 0 ? 0 : measure.clientsLimited / measure.clients,
    topLimited: topLimited.map(clientJson),
    heaviest: heaviest.map(clientJson),
    worstWindow: peakJson(worstWindow),
    burst: peakJson(burst),
  };
}

function lockoutJson({ longestLockoutMs }: { readonly longestLockoutMs: number }): { longestLockoutMs: number | null } {
  return { longestLockoutMs: Number.isFinite(longestLockoutMs) ? longestLockoutMs : null };
}
