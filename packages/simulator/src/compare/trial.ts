import type { Policy } from "@floodgate/core";
import { invalidOption, type PlainRule, type RuleSet } from "@floodgate/core/rules";
import { KeyIndex } from "../measure/per-client.js";
import { RuleMeter } from "../measure/rule-meter.js";
import type { LogSource } from "../read/source.js";
import { defaultMaxClients, Replay, type ReplayOptions, replayLogs } from "../replay/replay.js";
import { measuring, policyOf } from "../simulate.js";

/** Which requests policies are tried on, and whom they count. */
export interface TrialOptions {
  /** What they count by, as in a rule's `key`; several are separated by commas. Default `ip`. */
  readonly by?: string | undefined;
  /** The requests that count: `POST /login`, `/posts/*`. Default: all. */
  readonly match?: string | undefined;
}

/** The most policies that are tried at once. Each takes memory for each client. */
const maxPolicies = 31;

/** A rule in shadow mode for each policy: so each decides as if it were alone. The names are those of the policies in the map. */
export function trialRules(policies: ReadonlyMap<string, Policy>, options: TrialOptions): RuleSet {
  const { by = "ip", match } = options;
  const keys = by.split(",").map((key) => key.trim());
  const common = { key: keys.length === 1 ? keys[0] : keys, ...(match === undefined ? {} : { match: matchOf(match) }) };
  return { rules: [...policies].map(([name, policy]) => ({ name, ...common, policy, mode: "shadow" }) as unknown as PlainRule) };
}

/** What policies did, each as if it were the only one. */
export interface Trial {
  readonly set: RuleSet;
  readonly replay: Replay;
  /** By the names of the policies. */
  readonly meters: ReadonlyMap<string, RuleMeter>;
}

/**
 * Replays logs under several policies, and measures what each did.
 * @param windowMs the length of the windows to measure. Default: each policy's own.
 * @throws FloodgateError if there are too many policies.
 */
export async function measureTrial(
  sources: readonly LogSource[],
  policies: ReadonlyMap<string, Policy>,
  options: TrialOptions & ReplayOptions,
  windowMs?: number,
): Promise<Trial> {
  if (policies.size < 1 || policies.size > maxPolicies) {
    throw invalidOption(
      `compare takes 1 to ${maxPolicies} policies, but was given ${policies.size}. Write compare(logs, ["100/1m", "token-bucket 20 10/s"]).`,
    );
  }
  const set = trialRules(policies, options);
  const replay = new Replay(set, options);
  const keys = new KeyIndex(options.maxClients ?? defaultMaxClients);
  const meters = measuring(replay, options, (rule) => new RuleMeter(windowMs ?? policyOf(rule).spanMs, keys));
  await replayLogs(sources, set, options, replay);
  return { set, replay, meters };
}

/** The match of a rule that a text such as `POST /login` stands for. */
export function matchOf(text: string): { method?: string; path?: string } {
  const [, method, path] = /^(?:([A-Za-z-]+) +)?(\/\S*)$/.exec(text.trim()) ?? /^([A-Z]+)$/.exec(text.trim()) ?? [];
  if (method === undefined && path === undefined) {
    throw invalidOption(`--match ${JSON.stringify(text)} is no method and path. Write --match "POST /login" or --match "/posts/*".`);
  }
  return { ...(method === undefined ? {} : { method: method.toUpperCase() }), ...(path === undefined ? {} : { path }) };
}
