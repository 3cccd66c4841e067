import type { Policy } from "@floodgate/core";
import { nearest } from "@floodgate/core/rules";
import { sanitize } from "./terminal.js";

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/** `1 rule`, `2 rules`. */
export function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

/** The text for rules without problems. */
export function validRulesText(name: string, rules: readonly unknown[]): string {
  return `${sanitize(name)}: ${count(rules.length, "rule")}, no problems\n`;
}

/** The text for the version of the rules in Redis. */
export function versionText(rulesKey: string, version: string): string {
  return `${sanitize(rulesKey)}: version ${sanitize(version)}\n`;
}

/** Suggests the most similar known word, if there is one. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? "" : ` Did you mean ${JSON.stringify(near)}?`;
}

/** Formats milliseconds exactly: `1m 30s`. */
export function duration(ms: number): string {
  const parts: string[] = [];
  let rest = ms;
  for (const [unit, unitMs] of units) {
    const count = Math.floor(rest / unitMs);
    if (count > 0) parts.push(`${count}${unit}`);
    rest -= count * unitMs;
  }
  return parts.length === 0 ? "0ms" : parts.join(" ");
}

/** Formats a waiting time. Above ten seconds it is rounded up to whole seconds. */
export function waitText(ms: number): string {
  return duration(ms < 10_000 ? ms : Math.ceil(ms / 1000) * 1000);
}

/** Formats a time in this machine's time zone: `2026-11-21 14:03:05 GMT+1`. */
export function localTime(ms: number): string {
  // The Swedish locale formats dates like ISO 8601.
  return new Date(ms).toLocaleString("sv", { dateStyle: "short", timeStyle: "long" });
}

/** Formats a policy: `1 per 1s, fixed-window`. */
export function policyText(policy: Policy): string {
  return `${numbers(policy)}, ${policy.algorithm}`;
}

function numbers(policy: Policy): string {
  switch (policy.algorithm) {
    case "fixed-window":
      return `${policy.limit} per ${duration(policy.windowMs)}`;
    case "sliding-window-log":
      return `${policy.limit} per ${duration(policy.windowMs)}${policy.countRejected ? " including rejected requests" : ""}`;
    case "sliding-window-counter":
      return `${policy.limit} per ${duration(policy.windowMs)}${policy.buckets === 1 ? "" : ` in ${policy.buckets} parts`}`;
    case "gcra":
      return `${policy.limit} per ${duration(policy.windowMs)}${policy.burst === policy.limit ? "" : ` and ${policy.burst} at once`}`;
    case "token-bucket":
      return `${policy.refill} every ${duration(policy.everyMs)}${policy.style === "interval" ? " in steps" : ""} and ${policy.capacity} at once`;
    case "leaky-bucket": {
      const maxWait = policy.maxDelayMs === Number.POSITIVE_INFINITY ? "" : `, waiting at most ${duration(policy.maxDelayMs)}`;
      return `${policy.leak} every ${duration(policy.everyMs)} from a queue of ${policy.capacity}${maxWait}`;
    }
  }
}
