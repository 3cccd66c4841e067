import type { Policy } from "@floodgate/core";
import { describePolicy } from "@floodgate/core/rules";
import type { Comparison } from "../compare/compare.js";
import type { Peak, RuleMeasure } from "../measure/rule-meter.js";
import type { LogSummary, SimulatedRule, Simulation } from "../simulate.js";
import type { Quantile } from "../suggest/quantile.js";
import type { Suggestion } from "../suggest/suggest.js";

/** A simulation for programs: plain data. What a rule could never know is null. */
export function simulationJson({ rules, rejected, failed, notes, ...log }: Simulation): object {
  return { rules: rules.map(ruleJson), rejected, failed, ...logJson(log), notes };
}

/** What was read. Times are milliseconds since the epoch. */
export function logJson({ firstMs = Number.NaN, lastMs = Number.NaN, ...log }: LogSummary): object {
  return { ...log, firstMs: numberOrNull(firstMs), lastMs: numberOrNull(lastMs) };
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
    rules: rules.map(({ algorithm, options, policy, need, ...measure }) => ({
      policy: { algorithm, ...options },
      need: quantileJson(need),
      ...measureJson(measure),
    })),
    rates: rates.map(({ windowMs, percentiles, most }) => ({
      windowMs,
      percentiles: Object.fromEntries(
        [...percentiles].map(([percentile, found]) => [percentile, found === undefined ? null : quantileJson(found)]),
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

function quantileJson({ value, above, low, high }: Quantile): object {
  return { value, above, low, high: high ?? null };
}

function policyJson(policy: Policy): object {
  return { algorithm: policy.algorithm, numbers: describePolicy(policy) };
}

function ruleJson({ name, policy, mode, by, memory, ...measure }: SimulatedRule): object {
  return {
    name,
    policy: policyJson(policy),
    mode,
    by,
    ...measureJson(measure),
    memoryBytes: memory.inMemory,
    redisBytes: memory.inRedis,
  };
}

/** The measure of a rule. Infinite lock-outs, which no wait ends, are null. */
export function measureJson({ worstWindow, burst, ...measure }: RuleMeasure): object {
  const clientJson = (client: RuleMeasure["heaviest"][number]): object => ({
    ...client,
    longestLockoutMs: numberOrNull(client.longestLockoutMs),
  });
  return {
    ...measure,
    clientsLimitedShare: measure.clients === 0 ? 0 : measure.clientsLimited / measure.clients,
    topLimited: measure.topLimited.map(clientJson),
    heaviest: measure.heaviest.map(clientJson),
    longestLockoutMs: numberOrNull(measure.longestLockoutMs),
    worstWindow: peakJson(worstWindow),
    burst: peakJson(burst),
  };
}

function peakJson({ windowMs, units, key, atMs }: Peak): object {
  return { windowMs, units, key: key ?? null, atMs: atMs ?? null };
}

function numberOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
