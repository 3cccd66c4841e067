import { type Decision, FloodgateError, type Policy, parseDuration } from "@floodgate/core";
import { toPolicy } from "@floodgate/core/rules";
import { measureTrial, replayTrial, type TrialOptions, trialRule } from "../compare/trial.js";
import type { RuleMeasure } from "../measure/rule-meter.js";
import { WindowSums } from "../measure/window-sums.js";
import type { LogSource } from "../read/source.js";
import { Tally } from "../read/tally.js";
import { notesOf } from "../replay/notes.js";
import { defaultMaxClients } from "../replay/replay-logs.js";
import { type LogSummary, type SimulateOptions, summaryOf, withNames } from "../simulate.js";
import { Peaks } from "./peaks.js";
import { leastValue, type Quantile } from "./quantile.js";

export interface SuggestOptions extends SimulateOptions, TrialOptions {
  /** The share of clients that a limit may touch. Default 0.001. */
  readonly touch?: number | undefined;
  /** The window of the limits. Default `1m`. */
  readonly window?: string | undefined;
}

type AlgorithmName = Policy["algorithm"];

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
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `suggest: \`touch\` must be a share from 0 to 1, but was ${touch}. Write touch: 0.001.`,
    );
  }
  const once = sources.find((source) => source.once === true);
  if (once !== undefined) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `suggest: ${once.name} can be read only once, but it is read three times. Write it to a file first.`,
    );
  }
  const tally = new Tally();
  const windows = await needsOfWindows(sources, windowMs, window, options, tally);
  if (windows.peaks.clients === 0) {
    const what = match === undefined || tally.requests === 0 ? "that counts" : `that matches ${JSON.stringify(match)}`;
    throw new FloodgateError("FLOODGATE_INVALID_OPTION", `suggest: the logs have no request ${what}.`);
  }
  const needs = new Map<AlgorithmName, Quantile>();
  windows.algorithms.forEach((algorithm, i) => {
    needs.set(algorithm, leastValue(windows.peaks.descending(i), touch));
  });
  const rate = Math.max(1, (needs.get("sliding-window-log") as Quantile).value);
  const buckets = await needsOfBuckets(sources, windowMs, window, rate, options);
  buckets.algorithms.forEach((algorithm, i) => {
    needs.set(algorithm, leastValue(buckets.peaks.descending(i), touch));
  });
  const suggested = new Map<AlgorithmName, Readonly<Record<string, number | string>>>();
  for (const [algorithm, { value }] of needs) suggested.set(algorithm, optionsOf(algorithm, Math.max(1, value), rate, window));
  const policies = new Map([...suggested].map(([algorithm, own]) => [algorithm, toPolicy("suggest", { algorithm, ...own })]));
  const { replay, meter } = await measureTrial(sources, policies, options, new Tally());
  const rules = [...policies].map(([algorithm, policy], i): SuggestedRule => {
    const measure = meter.measure(options.top ?? 10, i);
    const need = needs.get(algorithm) as Quantile;
    return { algorithm, options: suggested.get(algorithm) as SuggestedRule["options"], policy, need, ...withNames(measure, replay) };
  });
  return {
    ...summaryOf(tally),
    ...{ touch, window, by, match },
    clients: windows.peaks.clients,
    rates: ratesOf(windows.peaks, windows.algorithms.length),
    rules,
    notes: notesOf(trialRule(policies, options), options, tally, replay, rules),
  };
}

/** The options of an algorithm with a limit; buckets have this as their capacity, and flow at a rate. */
function optionsOf(algorithm: AlgorithmName, limit: number, rate: number, window: string): Record<string, number | string> {
  switch (algorithm) {
    case "token-bucket":
      return { capacity: limit, refill: rate, every: window };
    case "leaky-bucket":
      return { capacity: limit, leak: rate, every: window };
    case "gcra":
      return { limit: rate, window, burst: limit };
    default:
      return { limit, window };
  }
}

interface Needs {
  /** A column for each algorithm. */
  readonly peaks: Peaks;
  readonly algorithms: readonly AlgorithmName[];
}

const rateWindowsMs = [1000, 60_000, 3_600_000];

/** What the clients need of windows; and, in the columns after those of the algorithms, their busiest second, minute and hour. */
async function needsOfWindows(
  sources: readonly LogSource[],
  windowMs: number,
  window: string,
  options: SuggestOptions,
  tally: Tally,
): Promise<Needs> {
  const counted = ["fixed-window", "sliding-window-counter"] as const;
  const algorithms: readonly AlgorithmName[] = [...counted, "sliding-window-log"];
  const limit = Math.min(1e9, Math.floor(unlimited / windowMs));
  const peaks = new Peaks(algorithms.length + rateWindowsMs.length, options.maxClients ?? defaultMaxClients);
  // A log that nobody exceeds would hold every request, so it is measured: its need is the busiest window.
  const lengths = [windowMs, ...rateWindowsMs];
  const sums = new WindowSums(lengths.map((windowMs) => ({ windowMs })));
  const policies = new Map(
    counted.map((algorithm) => [algorithm, toPolicy("suggest", { algorithm, ...optionsOf(algorithm, limit, 0, window) })]),
  );
  await replayTrial(sources, policies, options, tally, (key, nowMs, decisions) => {
    const client = peaks.clientOf(key);
    if (client < 0) return;
    seeUsed(peaks, client, decisions);
    sums.add(client, nowMs, (decisions[0] as Decision).cost);
    for (let i = 0; i < lengths.length; i++) peaks.see(client, counted.length + i, sums.sum(client, i));
  });
  return { peaks, algorithms };
}

/** What the clients need of buckets that flow at a rate. */
async function needsOfBuckets(
  sources: readonly LogSource[],
  windowMs: number,
  window: string,
  rate: number,
  options: SuggestOptions,
): Promise<Needs> {
  const algorithms = ["token-bucket", "leaky-bucket", "gcra"] as const;
  const limit = Math.min(1e9, Math.floor(unlimited / windowMs));
  // No queue may hold a request for longer than a timer can.
  const longest = Math.min(limit, Math.max(1, Math.floor(((2 ** 31 - 1) * rate) / windowMs)));
  const peaks = new Peaks(algorithms.length, options.maxClients ?? defaultMaxClients);
  const policies = new Map(
    algorithms.map((algorithm) => {
      const most = algorithm === "leaky-bucket" ? longest : limit;
      return [algorithm, toPolicy("suggest", { algorithm, ...optionsOf(algorithm, most, rate, window) })];
    }),
  );
  await replayTrial(sources, policies, options, new Tally(), (key, _, decisions) => {
    const client = peaks.clientOf(key);
    if (client >= 0) seeUsed(peaks, client, decisions);
  });
  return { peaks, algorithms };
}

/** The units of its limit that a client has used under each policy; more than the limit if even this was too low. */
function seeUsed(peaks: Peaks, client: number, decisions: readonly Decision[]): void {
  for (let i = 0; i < decisions.length; i++) {
    const { allowed, limit, remaining } = decisions[i] as Decision;
    peaks.see(client, i, allowed ? limit - remaining : limit + 1);
  }
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
