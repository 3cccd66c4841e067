import { createLimiter, type Decision, type Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import { mostPolicies, RuleMeter } from "../measure/rule-meter.js";
import type { LogSource } from "../read/source.js";
import { defaultMaxClients, Replay } from "../replay/replay.js";
import { type ReplayOptions, replayLogs } from "../replay/replay-logs.js";
import { invalidOption } from "../support/invalid-option.js";

/** Which requests policies are tried on, and whom they count. */
export interface TrialOptions {
  /** What they count by, as in a rule's `key`; several are separated by commas. Default `ip`. */
  readonly by?: string | undefined;
  /** The requests that count: `POST /login`, `/posts/*`. Default: all. */
  readonly match?: string | undefined;
}

/** Called with each request that counts: its key, its time, and what each policy decided. */
export type OnDecisions = (key: string, nowMs: number, decisions: readonly Decision[]) => void;

/** The rule that says which requests count, and by what. It has the first policy, in shadow mode. */
export function trialRule(policies: ReadonlyMap<string, Policy>, options: TrialOptions): RuleSet {
  return trialRules(new Map([...policies].slice(0, 1)), options);
}

/** A rule in shadow mode for each policy: so each decides as if it were alone. The names are those of the policies in the map. */
export function trialRules(policies: ReadonlyMap<string, Policy>, options: TrialOptions): RuleSet {
  const { by = "ip", match } = options;
  const keys = by.split(",").map((key) => key.trim());
  const common = { key: keys.length === 1 ? keys[0] : keys, ...(match === undefined ? {} : { match: matchOf(match) }) };
  return { rules: [...policies].map(([name, policy]) => ({ name, ...common, policy, mode: "shadow" }) as unknown as PlainRule) };
}

/** Replays logs under several policies at once, each as if it were the only one. A middleware finds the key of a request for all of them. */
export async function replayTrial(
  sources: readonly LogSource[],
  policies: ReadonlyMap<string, Policy>,
  options: TrialOptions & ReplayOptions,
  onDecisions: OnDecisions,
  onOther: (type: "exempt" | "missing-key") => void = () => undefined,
): Promise<Replay> {
  const set = trialRule(policies, options);
  const replay = new Replay(set, options, policies.size);
  const { store } = replay;
  const others = [...policies].slice(1).map(([name, policy]) => createLimiter({ name, policy, store }));
  replay.onDecision = (key, decision) => {
    const decisions = [decision];
    for (const { limit } of others) decisions.push(store.consume(limit, key, decision.cost));
    onDecisions(key, replay.nowMs, decisions);
  };
  replay.onEvent = (event) => {
    if (event.type === "exempt" || event.type === "missing-key") onOther(event.type);
  };
  await replayLogs(sources, set, options, replay);
  return replay;
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
): Promise<{ replay: Replay; meter: RuleMeter }> {
  if (policies.size < 1 || policies.size > mostPolicies) {
    throw invalidOption(
      `compare takes 1 to ${mostPolicies} policies, but was given ${policies.size}. Write compare(logs, ["100/1m", "token-bucket 20 10/s"]).`,
    );
  }
  const meter = new RuleMeter(
    [...policies.values()].map(({ spanMs }) => windowMs ?? spanMs),
    options.maxClients ?? defaultMaxClients,
  );
  const replay = await replayTrial(
    sources,
    policies,
    options,
    (key, nowMs, decisions) => meter.add(key, nowMs, decisions),
    (type) => meter.count(type),
  );
  return { replay, meter };
}

/** The match of a rule that a text such as `POST /login` stands for. */
export function matchOf(text: string): { method?: string; path?: string } {
  const [, method, path] = /^(?:([A-Za-z-]+) +)?(\/\S*)$/.exec(text.trim()) ?? /^([A-Z]+)$/.exec(text.trim()) ?? [];
  if (method === undefined && path === undefined) {
    throw invalidOption(`--match ${JSON.stringify(text)} is no method and path. Write --match "POST /login" or --match "/posts/*".`);
  }
  return { ...(method === undefined ? {} : { method: method.toUpperCase() }), ...(path === undefined ? {} : { path }) };
}
