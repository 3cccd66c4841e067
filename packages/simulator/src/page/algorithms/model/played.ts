import type { Policy } from "@floodgate/core";
import type { Scale } from "../draw/timeline.js";
import { scenarios, windowsShown } from "./scenarios.js";
import { policiesOf, type Settings } from "./settings.js";

/** What is played: policies by the names of their lanes, and the times of all requests, in milliseconds since the epoch. */
export interface Played {
  readonly policies: Readonly<Record<string, Policy>>;
  readonly times: readonly number[];
  readonly scale: Scale;
}

/** Scenarios take place in 2027. Windows begin at whole multiples of their length. */
const epochMs = Date.UTC(2027, 0, 1);

/** The scenario that is chosen, and the requests that the person has sent. */
export function scenarioPlayed(settings: Settings, given: Readonly<Record<string, Policy>> | undefined): Played {
  const { scenario, limit, windowMs, seed, sent, edited } = settings;
  const startMs = Math.floor(epochMs / windowMs) * windowMs;
  const times = [...scenarios[scenario].times(limit, windowMs, seed), ...sent].sort((a, b) => a - b).map((ms) => startMs + ms);
  const policies = given === undefined ? policiesOf(settings) : { ...given, ...edited };
  return { policies, times, scale: { startMs, spanMs: windowsShown * windowMs, windowMs, limit: given === undefined ? limit : undefined } };
}

/** Requests of a log, and those that the person has sent. */
export function logPlayed(settings: Settings, given: Readonly<Record<string, Policy>> | undefined, requests: readonly number[]): Played {
  const policies = { ...(given ?? policiesOf(settings)), ...settings.edited };
  const windowMs = Object.values(policies)[0]?.spanMs ?? settings.windowMs;
  const [first = 0, last = first] = [requests[0], requests.at(-1)];
  const startMs = Math.floor(first / windowMs) * windowMs;
  const spanMs = Math.max(windowsShown * windowMs, Math.ceil((last - startMs) / windowMs + 0.5) * windowMs);
  const times = [...requests, ...settings.sent.map((ms) => startMs + ms)].sort((a, b) => a - b);
  return { policies, times, scale: { startMs, spanMs, windowMs, limit: undefined } };
}
