import { type Decision, type Policy, parseDuration } from "@floodgate/core";
import { toPolicy } from "@floodgate/core/rules";
import { type AlgorithmName, optionsFor } from "../compare/policy-text.js";
import { measureTrial, replayTrial, type TrialOptions, trialRule } from "../compare/trial.js";
import type { RuleMeasure } from "../measure/rule-meter.js";
import { WindowSums } from "../measure/window-sums.js";
import type { LogSource } from "../read/source.js";
import { notesOf } from "../replay/notes.js";
import { defaultMaxClients } from "../replay/replay.js";
import { type LogSummary, type SimulateOptions, summaryOf, withNames } from "../simulate.js";
import { invalidOption } from "../support/invalid-option.js";
import { Peaks, usedOf } from "./peaks.js";
import { leastValue, type Quantile } from "./quantile.js";

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

/** A limit that no client reaches. */
const unlimited = 2 ** 50;
export const percentiles: readonly number[] = [50, 90, 99, 99.9];

/**
 * The least limits that would have touched at most a share of the clients. The algorithms themselves say what each client needs: under a
 * limit that nobody reaches, the most of it that a client has used is the least limit under which it is never rejected. Reads the logs three
 * times: for windows, for buckets, and to try what it suggests.
 * @throws FloodgateError if an option is invalid, the logs have no request, or a log can be read only once.
 */
export async function suggest(sources: readonly LogSource[], options: SuggestOptions = {}): Promise<Suggestion> {
  const { touch = 0.001, window = "1m", by = "ip", match } = options;
  const windowMs = parseDuration(window, "window");
  if (!(touch >= 0 && touch < 1)) {
    throw invalidOption(`suggest: \`touch\` must be a share from 0 to 1, but was ${touch}. Write touch: 0.001.`);
  }
  const once = sources.find((source) => source.once === true);
  if (once !== undefined) {
    throw invalidOption(`suggest: ${once.name} can be read only once, but it is read three times. Write it to a file first.`);
  }
  const base = { windowMs, window, rate: 0 };
  const counted: readonly AlgorithmName[] = ["fixed-window", "sliding-window-counter"];
  const { peaks: windows, requests } = await needsOf(sources, counted, base, [windowMs, ...rateWindowsMs], options);
  if (windows.keys.size === 0) {
    const what = match === undefined || requests === 0 ? "that counts" : `that matches ${JSON.stringify(match)}`;
    throw invalidOption(`suggest: the logs have no request ${what}.`);
  }
  const needs = new Map<AlgorithmName, Quantile>();
  const need = (algorithms: readonly AlgorithmName[], peaks: Peaks): void => {
    for (const [i, algorithm] of algorithms.entries()) needs.set(algorithm, leastValue(peaks.descending(i), touch));
  };
  need([...counted, "sliding-window-log"], windows);
  const rate = Math.max(1, (needs.get("sliding-window-log") as Quantile).value);
  const flowing: readonly AlgorithmName[] = ["token-bucket", "leaky-bucket", "gcra"];
  need(flowing, (await needsOf(sources, flowing, { ...base, rate }, [], options)).peaks);
  const suggested = new Map<AlgorithmName, Readonly<Record<string, number | string>>>();
  for (const [algorithm, { value }] of needs) suggested.set(algorithm, optionsFor(algorithm, Math.max(1, value), rate, window));
  const policies = new Map([...suggested].map(([algorithm, own]) => [algorithm, toPolicy("suggest", { algorithm, ...own })]));
  const { replay, meter } = await measureTrial(sources, policies, options);
  const rules = [...policies].map(([algorithm, policy], i): SuggestedRule => {
    const measure = meter.measure(options.top ?? 10, i);
    const need = needs.get(algorithm) as Quantile;
    return { algorithm, options: suggested.get(algorithm) as SuggestedRule["options"], policy, need, ...withNames(measure, replay) };
  });
  return {
    ...summaryOf(replay.tally),
    ...{ touch, window, by, match },
    clients: windows.keys.size,
    rates: ratesOf(windows, counted.length + 1),
    rules,
    notes: notesOf(trialRule(policies, options), options, replay, rules),
  };
}

const rateWindowsMs = [1000, 60_000, 3_600_000];

/**
 * What the clients need: the most that they have used of a limit that nobody reaches. A log with that limit would hold every request, so for
 * the windows of `lengths` the busiest one is measured in its place. They are the columns after those of the algorithms.
 */
async function needsOf(
  sources: readonly LogSource[],
  algorithms: readonly AlgorithmName[],
  { windowMs, window, rate }: { readonly windowMs: number; readonly window: string; readonly rate: number },
  lengths: readonly number[],
  options: SuggestOptions,
): Promise<{ peaks: Peaks; requests: number }> {
  const limit = Math.min(1e9, Math.floor(unlimited / windowMs));
  // No queue may hold a request for longer than a timer can.
  const longest = Math.min(limit, Math.max(1, Math.floor(((2 ** 31 - 1) * rate) / windowMs)));
  const peaks = new Peaks(algorithms.length + lengths.length, options.maxClients ?? defaultMaxClients);
  const sums = new WindowSums(lengths.map((windowMs) => ({ windowMs })));
  const policies = algorithms.map((algorithm): [string, Policy] => {
    const most = algorithm === "leaky-bucket" ? longest : limit;
    return [algorithm, toPolicy("suggest", { algorithm, ...optionsFor(algorithm, most, rate, window) })];
  });
  const { tally } = await replayTrial(sources, new Map(policies), options, (key, nowMs, decisions) => {
    const client = peaks.keys.of(key);
    if (client < 0) return;
    for (let i = 0; i < decisions.length; i++) peaks.see(client, i, usedOf(decisions[i] as Decision));
    if (lengths.length === 0) return;
    sums.add(client, nowMs, (decisions[0] as Decision).cost);
    for (let i = 0; i < lengths.length; i++) peaks.see(client, algorithms.length + i, sums.sum(client, i));
  });
  return { peaks, requests: tally.requests };
}

function ratesOf(peaks: Peaks, column: number): RateDistribution[] {
  return rateWindowsMs.map((windowMs, i) => {
    const descending = peaks.descending(column + i);
    const found = percentiles.map((percentile): [number, Quantile | undefined] => {
      const share = 1 - percentile / 100;
      // Above it there must be one client at least.
      return [percentile, descending.length * share + 1e-9 >= 1 ? leastValue(descending, share) : undefined];
    });
    return { windowMs, percentiles: new Map(found), most: descending[0] as number };
  });
}
