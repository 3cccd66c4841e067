import { type Policy, parseDuration } from "@floodgate/core";
import type { RuleMeasure, RuleMeter } from "../measure/rule-meter.js";
import { parsePolicy } from "../policies/policy-text.js";
import type { Tally } from "../read/requests.js";
import type { LogSource } from "../read/source.js";
import { notesOf } from "../replay/notes.js";
import { defaultTop, type LogSummary, type SimulateOptions, summaryOf, withNames } from "../simulate.js";
import { measureTrial, type TrialOptions } from "./trial.js";

export interface CompareOptions extends SimulateOptions, TrialOptions {
  /** The length of the windows in which all policies are measured. Default: the longest span among the policies. */
  readonly window?: string | undefined;
}

/** One policy, and what it would have done if it were the only one. */
export interface ComparedPolicy extends RuleMeasure {
  /** As it was written. */
  readonly text: string;
  readonly policy: Policy;
}

/** A client on which the policies differ. */
export interface DifferingClient {
  readonly key: string;
  readonly requests: number;
  /** How many of its requests each policy would have limited, in the order of the policies. */
  readonly limited: readonly number[];
}

export interface Comparison extends LogSummary {
  readonly windowMs: number;
  readonly by: string;
  readonly policies: readonly ComparedPolicy[];
  /** The clients on which they differ most. */
  readonly differing: readonly DifferingClient[];
  readonly notes: readonly string[];
}

/**
 * Tries policies side by side on one reading of the logs, each as if it were the only one.
 * @param texts policies as `parsePolicy` reads them: `100/1m`, `token-bucket 20 10/s`.
 * @throws FloodgateError if a policy or an option is invalid.
 */
export async function compare(sources: readonly LogSource[], texts: readonly string[], options: CompareOptions = {}): Promise<Comparison> {
  const policies = new Map(texts.map((text, i) => [`policy ${i + 1}`, parsePolicy(text)]));
  const spans = [...policies.values()].map(({ spanMs }) => spanMs);
  const windowMs = options.window === undefined ? Math.max(...spans) : parseDuration(options.window, "window");
  const trial = await measureTrial(sources, policies, options, windowMs);
  const { set, replay } = trial;
  const meters = [...trial.meters.values()];
  const top = options.top ?? defaultTop;
  const compared = [...policies.values()].map((policy, i): ComparedPolicy => {
    return { text: texts[i] as string, policy, ...withNames((meters[i] as RuleMeter).measure(top), replay) };
  });
  return {
    ...summaryOf(replay.tally),
    windowMs,
    by: options.by ?? "ip",
    policies: compared,
    differing: differingClients(meters, top).map((client) => ({ ...client, key: replay.clients.shown(client.key) })),
    notes: [...unmatched(replay.tally, compared, options), ...notesOf(set, options, replay, compared)],
  };
}

/** Says so if no request is counted. */
function unmatched({ requests }: Tally, [first]: readonly ComparedPolicy[], { match }: TrialOptions): string[] {
  if (requests === 0 || first === undefined || first.requests > 0 || match === undefined) return [];
  return [`No request of the log matches ${JSON.stringify(match)}, so nothing was compared.`];
}

function differingClients(meters: readonly RuleMeter[], top: number): DifferingClient[] {
  const limited = meters.map((meter) => meter.limitedClients());
  const clients = new Map<string, DifferingClient>();
  for (const { key, requests } of limited.flatMap((own) => [...own.values()])) {
    if (!clients.has(key)) clients.set(key, { key, requests, limited: limited.map((own) => own.get(key)?.limited ?? 0) });
  }
  const spread = ({ limited }: DifferingClient): number => Math.max(...limited) - Math.min(...limited);
  return [...clients.values()]
    .filter((client) => spread(client) > 0)
    .sort((a, b) => spread(b) - spread(a) || b.requests - a.requests)
    .slice(0, top);
}
