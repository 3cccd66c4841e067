import { formatDuration } from "../support/duration.js";
import { isUsualStart } from "./calendar.js";
import type { AlgorithmName, Policy } from "./registry.js";

type PolicyOf<Name extends AlgorithmName> = Extract<Policy, { readonly algorithm: Name }>;

/** The numbers of each kind of policy in words. Apart from the algorithms: apps that only decide do not carry them. */
const words: { readonly [Name in AlgorithmName]: (policy: PolicyOf<Name>) => string } = {
  "fixed-window": ({ limit, windowMs }) => `${limit} per ${formatDuration(windowMs)}`,
  "sliding-window-log": ({ limit, windowMs, countRejected }) =>
    `${limit} per ${formatDuration(windowMs)}${countRejected ? " including rejected requests" : ""}`,
  "sliding-window-counter": ({ limit, windowMs, buckets, strict }) =>
    `${limit} per ${formatDuration(windowMs)}${buckets === 1 ? "" : ` in ${buckets} parts`}${strict ? ", strict" : ""}`,
  "token-bucket": ({ capacity, refill, everyMs, style }) =>
    `${refill} every ${formatDuration(everyMs)}${style === "interval" ? " in steps" : ""} and ${capacity} at once`,
  "leaky-bucket": ({ capacity, leak, everyMs, maxDelayMs }) => {
    const maxWait = maxDelayMs === Number.POSITIVE_INFINITY ? "" : `, waiting at most ${formatDuration(maxDelayMs)}`;
    return `${leak} every ${formatDuration(everyMs)} from a queue of ${capacity}${maxWait}`;
  },
  gcra: ({ limit, windowMs, burst }) => `${limit} per ${formatDuration(windowMs)}${burst === limit ? "" : ` and ${burst} at once`}`,
  "calendar-window": ({ limit, per, timeZone, startsOn }) => {
    const first = isUsualStart(startsOn) ? "" : ` from ${typeof startsOn === "number" ? "day " : ""}${startsOn}`;
    return `${limit} per ${per}${first} in ${timeZone}`;
  },
  concurrency: ({ limit, holdMs }) => `${limit} at once, held for ${formatDuration(holdMs)}`,
};

/** A policy's numbers in words: `100 per 1m`. */
export function describePolicy(policy: Policy): string {
  return (words[policy.algorithm] as (policy: Policy) => string)(policy);
}
