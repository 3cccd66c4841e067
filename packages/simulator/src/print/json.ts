import { describePolicy } from "@floodgate/core/rules";
import type { Peak, RuleMeasure } from "../measure/rule-meter.js";
import type { LogSummary, SimulatedRule, Simulation } from "../simulate.js";

/** A simulation for programs: plain data. What a rule could never know is null. */
export function simulationJson({ rules, rejected, failed, notes, ...log }: Simulation): object {
  return { rules: rules.map(ruleJson), rejected, failed, ...logJson(log), notes };
}

/** What was read. Times are milliseconds since the epoch. */
export function logJson({ firstMs = Number.NaN, lastMs = Number.NaN, ...log }: LogSummary): object {
  return { ...log, firstMs: numberOrNull(firstMs), lastMs: numberOrNull(lastMs) };
}

function ruleJson({ name, policy, mode, by, memory, ...measure }: SimulatedRule): object {
  return {
    name,
    policy: { algorithm: policy.algorithm, numbers: describePolicy(policy) },
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
