import type { Policy } from "@floodgate/core";
import type { CompiledRule, RuleSet } from "@floodgate/core/rules";
import type { LogRequest } from "./formats/log-format.js";
import { widthOf } from "./measure/key-states.js";
import { KeyIndex } from "./measure/per-client.js";
import { type RuleMeasure, RuleMeter } from "./measure/rule-meter.js";
import type { Tally } from "./read/requests.js";
import type { LogSource } from "./read/source.js";
import { notesOf } from "./replay/notes.js";
import { defaultMaxClients, Replay, type ReplayOptions, replayLogs } from "./replay/replay.js";

export interface SimulateOptions extends ReplayOptions {
  /** How many clients are listed. Default 10. */
  readonly top?: number | undefined;
}

/** What was read. */
export interface LogSummary {
  /** All lines: those with a request, and those that were skipped. */
  readonly lines: number;
  readonly requests: number;
  readonly skipped: number;
  /** Why lines were skipped. */
  readonly skippedBecause: Readonly<Tally["skipped"]>;
  /** Requests that came out of order by more than could be sorted. They count at the time of the request before them. */
  readonly late: number;
  /** The first and the last time, in milliseconds since the epoch. Undefined without requests. */
  readonly firstMs: number | undefined;
  readonly lastMs: number | undefined;
  /** The format of each log. */
  readonly formats: Readonly<Record<string, string>>;
}

/** One rule, and what it did. */
export interface SimulatedRule extends RuleMeasure {
  readonly name: string;
  readonly policy: Policy;
  readonly mode: "enforce" | "shadow";
  /** What it counts by, as the rules say. */
  readonly by: string;
  readonly memory: MemoryNeed;
}

/** The memory that a store would need for one rule, in bytes: about, as measured in docs/performance.md. */
export interface MemoryNeed {
  readonly inMemory: number;
  readonly inRedis: number;
}

export interface Simulation extends LogSummary {
  readonly rules: readonly SimulatedRule[];
  /** Requests that any rule would have rejected. */
  readonly rejected: number;
  /** Requests with which the app would have failed, by the code of the error. */
  readonly failed: Readonly<Record<string, number>>;
  /** What one should know to judge the numbers, in sentences. */
  readonly notes: readonly string[];
}

export const defaultTop = 10;

/**
 * Replays logs against rules: each request at its own time, through the middleware, the rules and the memory store of production.
 * @throws FloodgateError if a rule, the format or an option is invalid.
 */
export async function simulate(sources: readonly LogSource[], set: RuleSet, options: SimulateOptions = {}): Promise<Simulation> {
  const replay = new Replay(set, options);
  const meters = measuring(replay, options);
  await replayLogs(sources, set, options, replay);
  return simulationOf(set, options, replay, meters);
}

/** Begins to measure a replay. Returns a meter for each rule, by its name. */
export function measuring(
  replay: Replay,
  { maxClients = defaultMaxClients }: SimulateOptions,
  meterOf = (rule: CompiledRule<LogRequest>): RuleMeter => new RuleMeter(policyOf(rule).spanMs, new KeyIndex(maxClients)),
): ReadonlyMap<string, RuleMeter> {
  const meters = new Map(replay.rules.map((rule) => [rule.name, meterOf(rule)]));
  replay.onDecision = (key, decision) => meters.get(decision.name)?.add(key, replay.nowMs, decision);
  replay.onEvent = (event) => {
    if (event.type === "banned" || event.type === "exempt" || event.type === "missing-key") meters.get(event.name)?.count(event.type);
  };
  return meters;
}

/** What the rules have done so far. */
export function simulationOf(set: RuleSet, options: SimulateOptions, replay: Replay, meters: ReadonlyMap<string, RuleMeter>): Simulation {
  const rules = replay.rules.map((rule, i): SimulatedRule => {
    const { key = "ip" } = set.rules[i] as RuleSet["rules"][number];
    const measured = measuredRule(rule.name, policyOf(rule), meters.get(rule.name) as RuleMeter, options);
    const by = typeof key === "string" ? key : key.join(", ");
    return { ...measured, ...withNames(measured, replay), mode: rule.shadow ? "shadow" : "enforce", by };
  });
  return {
    ...summaryOf(replay.tally),
    rules,
    rejected: replay.rejected,
    failed: Object.fromEntries(replay.failed),
    notes: notesOf(set, options, replay, rules),
  };
}

/** A rule with what its meter has measured so far. */
export function measuredRule(
  name: string,
  policy: Policy,
  meter: RuleMeter,
  { top = defaultTop }: SimulateOptions,
): Omit<SimulatedRule, "mode" | "by"> {
  const measure = meter.measure(top);
  return { name, policy, ...measure, memory: memoryNeed(policy, measure.keysAtOnce, meter.meanPeak(policy.quota)) };
}

/** Bytes of a key in the memory store, without the numbers of its state, 8 each; and of a key in Redis. */
const bytesOfKey = 108;
const bytesOfRedisKey = 120;
const bytesOfRedisEntry = 14;

/** @param entries how many entries the log of a key has, if the policy is a log. */
function memoryNeed(policy: Policy, keys: number, entries: number): MemoryNeed {
  const cells = widthOf(policy);
  const more = policy.algorithm === "sliding-window-log" ? Math.max(0, entries - 1) : 0;
  return {
    inMemory: Math.round(keys * (bytesOfKey + 8 * (cells + 2 * more))),
    inRedis: Math.round(keys * (bytesOfRedisKey + bytesOfRedisEntry * more)),
  };
}

/** Rules in a file have no policy function. */
export function policyOf({ fixed }: CompiledRule<LogRequest>): Policy {
  return (fixed as NonNullable<typeof fixed>).policy;
}

/** What was read, for reports. */
export function summaryOf(tally: Tally): LogSummary {
  // Requests that still wait to be sorted have been read, but no time is known yet.
  const isEmpty = tally.firstMs > tally.lastMs;
  return {
    lines: tally.lines,
    requests: tally.requests,
    skipped: tally.lines - tally.requests,
    skippedBecause: tally.skipped,
    late: tally.late,
    firstMs: isEmpty ? undefined : tally.firstMs,
    lastMs: isEmpty ? undefined : tally.lastMs,
    formats: Object.fromEntries(tally.formats),
  };
}

/** Shows the names of clients that have one instead of an address. */
export function withNames(measure: RuleMeasure, { clients }: Replay): RuleMeasure {
  const named = <T extends { readonly key: string | undefined }>(item: T): T => ({
    ...item,
    key: item.key === undefined ? undefined : clients.shown(item.key),
  });
  return {
    ...measure,
    topLimited: measure.topLimited.map(named),
    heaviest: measure.heaviest.map(named),
    worstWindow: named(measure.worstWindow),
    burst: named(measure.burst),
  };
}
