import {
  type Duration,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  parseDuration,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { formatDuration } from "@floodgate/core/rules";
import { count, visible } from "@floodgate/pages/format";
import { inLargeUnits, optionsOf } from "../../../policies/options.js";
import { parsePolicy } from "../../../policies/policy-text.js";
import type { Scale } from "../draw/timeline.js";
import { type ScenarioName, scenarios, windowsShown } from "./scenarios.js";

/** Everything that a person can choose, and a link can carry. */
export interface Settings {
  readonly scenario: ScenarioName;
  /** The limit and the window that all policies have at first. */
  readonly limit: number;
  readonly windowMs: number;
  readonly seed: number;
  /** Policies that the person has edited, by the names of their lanes. */
  readonly edited: Readonly<Record<string, Policy>>;
  /** Requests of the person's own, in milliseconds from the start. */
  readonly sent: readonly number[];
}

export const initialSettings: Settings = { scenario: "edge", limit: 10, windowMs: 10_000, seed: 1, edited: {}, sent: [] };

/** More would take too long to draw. */
export const maxLimit = 1000;
export const maxSent = 1000;
const longestWindowMs = 86_400_000;
const maxSubWindows = 1000;
export const maxSeed: number = 2 ** 32 - 1;

/** A policy of each algorithm for the same limit in the same window, as alike as they can be. By the names of their lanes. */
function policiesFor(limit: number, windowMs: number): Readonly<Record<string, Policy>> {
  const window: Duration = `${BigInt(windowMs)}ms`;
  const fifth: Duration = `${BigInt(windowMs / 5)}ms`;
  const part = Math.max(1, Math.ceil(limit / 5));
  return {
    "fixed-window": fixedWindow({ limit, window }),
    "sliding-window-log": slidingWindowLog({ limit, window }),
    "sliding-window-counter": slidingWindowCounter({ limit, window }),
    "sliding-window-counter-strict": slidingWindowCounter({ limit, window, buckets: 5, strict: true }),
    "token-bucket": tokenBucket({ capacity: limit, refill: limit, every: window }),
    "token-bucket-interval": tokenBucket({ capacity: limit, refill: part, every: fifth, style: "interval" }),
    gcra: gcra({ limit, window, burst: part }),
    "leaky-bucket": leakyBucket({ capacity: limit, leak: limit, every: window }),
  };
}

/** A policy as the command line reads it, without its algorithm: `limit=10 window=10s`. */
function policyText(policy: Policy): string {
  return Object.entries(optionsOf(policy))
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

/** The settings as the hash of an address. What is as at first is left out. */
export function hashOf(settings: Settings): string {
  const { scenario, limit, windowMs, seed, edited, sent } = settings;
  const words = new URLSearchParams();
  words.set("play", scenario);
  words.set("limit", String(limit));
  words.set("window", inLargeUnits(`${windowMs}ms`));
  if (scenario === "random") words.set("seed", String(seed));
  for (const [name, policy] of Object.entries(edited)) words.set(name, policyText(policy));
  if (sent.length > 0) words.set("sent", sent.join(","));
  return `#${words}`;
}

/** Reads a hash that anybody may have written. A part that is invalid keeps its first value, and a sentence says so. */
export function settingsOf(hash: string): { readonly settings: Settings; readonly problems: readonly string[] } {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const problems: string[] = [];
  const read = <Value>(name: string, kept: Value, parse: (text: string) => Value): Value => {
    const text = words.get(name);
    words.delete(name);
    if (text === null) return kept;
    try {
      return parse(text);
    } catch (error) {
      problems.push(visible(`${name}: ${(error as Error).message}`));
      return kept;
    }
  };
  const scenario = read("play", initialSettings.scenario, scenarioOf);
  const limit = read("limit", initialSettings.limit, (text) => wholeNumber(text, 1, maxLimit));
  const windowMs = read("window", initialSettings.windowMs, windowOf);
  const seed = read("seed", initialSettings.seed, (text) => wholeNumber(text, 0, maxSeed));
  const sent = read("sent", initialSettings.sent, (text) => sentOf(text, windowMs));
  const edited: Record<string, Policy> = {};
  for (const [name, { algorithm }] of Object.entries(policiesFor(limit, windowMs))) {
    const policy = read<Policy | undefined>(name, undefined, (text) => drawable(parsePolicy(`${algorithm} ${text}`)));
    if (policy !== undefined) edited[name] = policy;
  }
  for (const name of words.keys()) problems.push(visible(`there is no setting ${JSON.stringify(name)}`, 80));
  return { settings: { scenario, limit, windowMs, seed, edited, sent }, problems: problems.slice(0, 8) };
}

/** @throws Error if a policy has more state than a lane can draw. */
export function drawable(policy: Policy): Policy {
  if (policy.algorithm !== "sliding-window-counter" || policy.buckets <= maxSubWindows) return policy;
  throw new Error(`\`buckets\` can be at most ${count(maxSubWindows)} here, but was ${policy.buckets}.`);
}

/** @throws Error if the text is no whole number in the range. */
export function wholeNumber(text: string, least: number, most: number): number {
  const number = Number(text);
  if (/^\d{1,15}$/.test(text) && number >= least && number <= most) return number;
  throw new Error(`must be a whole number from ${least} to ${count(most)}, but was ${quoted(text)}.`);
}

/** @throws Error if the text is no duration from a second to a day. */
export function windowOf(text: string): number {
  const ms = parseDuration(text, "window");
  if (ms >= 1000 && ms <= longestWindowMs && ms % 1000 === 0) return ms;
  throw new Error(`must be whole seconds from 1s to ${formatDuration(longestWindowMs)}, but was ${quoted(text)}.`);
}

function scenarioOf(text: string): ScenarioName {
  if (Object.hasOwn(scenarios, text)) return text as ScenarioName;
  throw new Error(`must be one of ${Object.keys(scenarios).join(", ")}, but was ${quoted(text)}.`);
}

function sentOf(text: string, windowMs: number): number[] {
  const parts = text.split(",", maxSent + 1);
  if (parts.length > maxSent) throw new Error(`can have at most ${count(maxSent)} requests.`);
  return parts.map((part) => wholeNumber(part, 0, windowsShown * windowMs)).sort((a, b) => a - b);
}

const quoted = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);

/** What is played: policies by the names of their lanes, and the times of all requests, in milliseconds since the epoch. */
export interface Played {
  readonly policies: Readonly<Record<string, Policy>>;
  readonly times: readonly number[];
  readonly scale: Scale;
}

/** Scenarios take place in 2027. Windows begin at whole multiples of their length. */
const epochMs = Date.UTC(2027, 0, 1);

/** The scenario that is chosen or the requests of a log, and the requests that the person has sent. */
export function playedOf(
  settings: Settings,
  given: Readonly<Record<string, Policy>> | undefined,
  log: readonly number[] | undefined,
): Played {
  const { scenario, limit, seed, sent, edited } = settings;
  const policies = { ...(given ?? policiesFor(limit, settings.windowMs)), ...edited };
  const windowMs = log === undefined ? settings.windowMs : (Object.values(policies)[0]?.spanMs ?? settings.windowMs);
  const [first = 0, last = first] = log === undefined ? [epochMs] : [log[0], log.at(-1)];
  const startMs = Math.floor(first / windowMs) * windowMs;
  const spanMs = Math.max(windowsShown, Math.ceil((last - startMs) / windowMs + 0.5)) * windowMs;
  const requests = log ?? scenarios[scenario].times(limit, windowMs, seed).map((ms) => startMs + ms);
  const times = [...requests, ...sent.map((ms) => startMs + ms)].sort((a, b) => a - b);
  const isLimitKnown = log === undefined && given === undefined;
  return { policies, times, scale: { startMs, spanMs, windowMs, limit: isLimitKnown ? limit : undefined } };
}
