import type { Policy } from "@floodgate/core";
import { nearest } from "@floodgate/core/rules";
import { harmless } from "./terminal.js";

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

/** What is said of a file of rules without problems. */
export function soundWords(name: string, rules: readonly unknown[]): string {
  return `${harmless(name)}: ${count(rules.length, "rule")}, no problems\n`;
}

/** Which version is under a key of Redis. */
export function versionWords(rulesKey: string, version: string): string {
  return `${harmless(rulesKey)}: version ${harmless(version)}\n`;
}

/** The known word that is nearest to another, as a question. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? "" : ` Did you mean ${JSON.stringify(near)}?`;
}

/** A whole number of milliseconds, exactly: `1m 30s`. */
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

/** How long somebody waits: never less than it is, and above ten seconds in whole ones. */
export function wait(ms: number): string {
  return duration(ms < 10_000 ? ms : Math.ceil(ms / 1000) * 1000);
}

/** A time in the time zone of this machine, which it names: `2026-11-21 14:03:05 GMT+1`. */
export function localTime(ms: number): string {
  // Sweden writes times as ISO 8601 does.
  return new Date(ms).toLocaleString("sv", { dateStyle: "short", timeStyle: "long" });
}

/** A policy as it is said: `1 per 1s, fixed-window`. */
export function policyWords(policy: Policy): string {
  return `${numbers(policy)}, ${policy.algorithm}`;
}

function numbers(policy: Policy): string {
  switch (policy.algorithm) {
    case "fixed-window":
      return `${policy.limit} per ${duration(policy.windowMs)}`;
    case "sliding-window-log":
      return `${policy.limit} per ${duration(policy.windowMs)}${policy.countRejected ? " with those rejected" : ""}`;
    case "sliding-window-counter":
      return `${policy.limit} per ${duration(policy.windowMs)}${policy.buckets === 1 ? "" : ` in ${policy.buckets} parts`}`;
    case "gcra":
      return `${policy.limit} per ${duration(policy.windowMs)}${policy.burst === policy.limit ? "" : ` and ${policy.burst} at once`}`;
    case "token-bucket":
      return `${policy.refill} each ${duration(policy.everyMs)}${policy.style === "interval" ? " at its end" : ""} and ${policy.capacity} at once`;
    case "leaky-bucket": {
      const most = policy.maxDelayMs === Number.POSITIVE_INFINITY ? "" : ` for ${duration(policy.maxDelayMs)} at most`;
      return `${policy.leak} each ${duration(policy.everyMs)} from a queue of ${policy.capacity}${most}`;
    }
  }
}
