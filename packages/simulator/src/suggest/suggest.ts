import { FloodgateError, type Policy, parseDuration, slidingWindowLog } from "@floodgate/core";
import { invalidOption, toPolicy } from "@floodgate/core/rules";
import { measureTrial, type TrialOptions, trialRules } from "../compare/trial.js";
import { measuringPolicy, Needs } from "../measure/needs.js";
import { KeyIndex } from "../measure/per-client.js";
import { leastValue, type Quantile } from "../measure/quantiles.js";
import type { RuleMeasure, RuleMeter } from "../measure/rule-meter.js";
import { type AlgorithmName, algorithmNames, isWindow, optionsFor } from "../policies/options.js";
import type { LogSource } from "../read/source.js";
import { notesOf } from "../replay/notes.js";
import { defaultMaxClients, Replay, replayLogs } from "../replay/replay.js";
import { defaultTop, type LogSummary, type SimulateOptions, summaryOf, withNames } from "../simulate.js";

export interface SuggestOptions extends SimulateOptions, TrialOptions {
  /** The share of clients that a limit may touch. Default 0.001. */
  readonly touch?: number | undefined;
  /** The window of the limits. Default `1m`. */
  readonly window?: string | undefined;
}

/** The least limit of one algorithm, and what it would have done. */
export interface SuggestedRule extends RuleMeasure {
  readonly algorithm: AlgorithmName;
  /** The options of the policy, as a rules file writes them. */
  readonly options: Readonly<Record<string, number | string>>;
  readonly policy: Policy;
  /** The limit, or the capacity, among what the clients need. */
  readonly need: Quantile;
}

/** The distribution of the clients' busiest windows of one length. */
export interface RateDistribution {
  readonly windowMs: number;
  /** By percentile: 50, 90, 99, 99.9. Undefined if there are too few clients for it. */
  readonly percentiles: ReadonlyMap<number, Quantile | undefined>;
  readonly most: number;
}

export interface Suggestion extends LogSummary {
  readonly touch: number;
  readonly window: string;
  readonly by: string;
  readonly match: string | undefined;
  /** How many clients the statistics rest on. */
  readonly clients: number;
  readonly rates: readonly RateDistribution[];
  readonly rules: readonly SuggestedRule[];
  readonly notes: readonly string[];
}

const defaultWindow = "1m";

export const percentiles: readonly number[] = [50, 90, 99, 99.9];

/**
 * The least limits that would have touched at most a share of the clients. The algorithms themselves say what each client needs: see
 * `measuringPolicy`. Reads the logs three times: for windows, for buckets, and to try what it suggests.
 * @throws FloodgateError if an option is invalid, or a log can be read only once; `FLOODGATE_NO_REQUESTS` if the logs have no request.
 */
export async function suggest(sources: readonly LogSource[], options: SuggestOptions = {}): Promise<Suggestion> {
  const { touch = 0.001, window = defaultWindow, by = "ip", match } = options;
  parseDuration(window, "window");
  if (!(touch >= 0 && touch < 1)) {
    throw invalidOption(`suggest: \`touch\` must be a share from 0 to 1, but was ${touch}. Write touch: 0.001.`);
  }
  const once = sources.find((source) => source.once === true);
  if (once !== undefined) {
    throw invalidOption(`suggest: ${once.name} can be read only once, but it is read three times. Write it to a file first.`);
  }
  const windows = algorithmNames.filter(isWindow);
  const buckets = algorithmNames.filter((name) => !isWindow(name));
  const used = await needsOf(sources, windows, 1, rateWindowsMs, options);
  const rate = Math.max(1, leastValue(used[windows.indexOf("sliding-window-log")] as Float64Array, touch).value);
  const needs = [...used.slice(0, windows.length), ...(await needsOf(sources, buckets, rate, [], options))];
  const suggested = [...windows, ...buckets].map((algorithm, i) => {
    const need = leastValue(needs[i] as Float64Array, touch);
    const own = optionsFor(algorithm, Math.max(1, need.value), rate, window);
    return { algorithm, options: own, policy: toPolicy("suggest", { algorithm, ...own }), need };
  });
  const policies = new Map(suggested.map(({ algorithm, policy }) => [algorithm, policy]));
  const { set, replay, meters } = await measureTrial(sources, policies, options);
  const rules = suggested.map((each): SuggestedRule => {
    const measure = (meters.get(each.algorithm) as RuleMeter).measure(options.top ?? defaultTop);
    return { ...each, ...withNames(measure, replay) };
  });
  return {
    ...summaryOf(replay.tally),
    ...{ touch, window, by, match },
    clients: (used[0] as Float64Array).length,
    rates: rateWindowsMs.map((windowMs, i) => rateOf(windowMs, used[windows.length + i] as Float64Array)),
    rules,
    notes: notesOf(set, options, replay, rules),
  };
}

const rateWindowsMs = [1000, 60_000, 3_600_000];

/**
 * What the clients need under each algorithm, and of logs with the windows of `rates`: the greatest first.
 * @throws FloodgateError `FLOODGATE_NO_REQUESTS` if no request counts.
 */
async function needsOf(
  sources: readonly LogSource[],
  algorithms: readonly AlgorithmName[],
  rate: number,
  rates: readonly number[],
  options: SuggestOptions,
): Promise<Float64Array[]> {
  const { window = defaultWindow, match, maxClients = defaultMaxClients } = options;
  const policies = algorithms.map((algorithm) => toPolicy("suggest", { algorithm, ...optionsFor(algorithm, 1, rate, window) }));
  const set = trialRules(new Map(policies.map((policy) => [policy.algorithm, measuringPolicy(policy)])), options);
  const replay = new Replay(set, options);
  const keys = new KeyIndex(maxClients);
  const needs = new Map<string, Needs>(policies.map((policy) => [policy.algorithm, new Needs(policy, keys)]));
  const logs = rates.map((ms) => new Needs(slidingWindowLog({ limit: 1, window: `${BigInt(ms)}ms` }), keys));
  replay.onDecision = (key, decision) => {
    needs.get(decision.name)?.see(key, decision, replay.nowMs);
    // A log needs only the costs of the requests, which are the same under each policy.
    if (decision.name === algorithms[0]) for (const log of logs) log.see(key, decision, replay.nowMs);
  };
  await replayLogs(sources, set, options, replay);
  if (keys.size === 0) {
    const what = match === undefined || replay.tally.requests === 0 ? "that counts" : `that matches ${JSON.stringify(match)}`;
    const write = match === undefined ? "Give a log with requests" : "Give another `match`, or leave it out";
    throw new FloodgateError("FLOODGATE_NO_REQUESTS", `suggest: the logs have no request ${what}. ${write}.`);
  }
  return [...needs.values(), ...logs].map((each) => each.descending());
}

function rateOf(windowMs: number, descending: Float64Array): RateDistribution {
  const found = percentiles.map((percentile): [number, Quantile | undefined] => {
    const share = 1 - percentile / 100;
    // Above it there must be one client at least.
    return [percentile, descending.length * share + 1e-9 >= 1 ? leastValue(descending, share) : undefined];
  });
  return { windowMs, percentiles: new Map(found), most: descending[0] as number };
}
