import type { Policy } from "@floodgate/core";

interface Words {
  readonly title: string;
  readonly goodFor: string;
  readonly letsThrough: string;
}

/** What a person should know of each algorithm before choosing it. */
export function wordsOf(policy: Policy): Words {
  if (policy.algorithm === "token-bucket" && policy.style === "interval") return intervalBucket;
  if (policy.algorithm === "sliding-window-counter" && policy.strict) return strictCounter;
  return words[policy.algorithm];
}

const words: Readonly<Record<Policy["algorithm"], Words>> = {
  "fixed-window": {
    title: "Fixed window",
    goodFor: "Good for quotas that start again at a known time. One count a key.",
    letsThrough: "Lets twice the limit through around the edge of a window.",
  },
  "calendar-window": {
    title: "Calendar window",
    goodFor: "Good for quotas of a day or a month, in the customer's time zone. One count a key.",
    letsThrough: "Lets twice the limit through around midnight, or the edge of a month.",
  },
  "sliding-window-log": {
    title: "Sliding window log",
    goodFor: "Good for logins and requests that cost money: it is exact. Memory grows with the limit.",
    letsThrough: "Never lets more than the limit through in any window.",
  },
  "sliding-window-counter": {
    title: "Sliding window counter",
    goodFor: "Good for most limits: close to the log, with two counts a key.",
    letsThrough: "Lets up to twice the limit through if a client times its bursts.",
  },
  "token-bucket": {
    title: "Token bucket, smooth",
    goodFor: "Good for clients that send bursts. Tokens flow in all the time.",
    letsThrough: "Lets a full bucket through at once, and what flows in meanwhile.",
  },
  gcra: {
    title: "GCRA",
    goodFor: "Good for an even pace with a small burst, in terms of limit and window.",
    letsThrough: "Lets the burst through at once, then one at a time.",
  },
  "leaky-bucket": {
    title: "Leaky bucket queue",
    goodFor: "Good for a backend that needs an even pace. Requests wait for their turn.",
    letsThrough: "Lets requests through one by one, never two at once.",
  },
  concurrency: {
    title: "Concurrency",
    goodFor: "Good for slow requests: uploads, exports, streams. A slot for each request in flight.",
    letsThrough: "Never lets more than the limit run at once.",
  },
};

const strictCounter: Words = {
  title: "Sliding window counter, strict",
  goodFor: "Good for high limits that must hold: a few counts a key. More parts are more generous.",
  letsThrough: "Never lets more than the limit through in any window.",
};

const intervalBucket: Words = {
  title: "Token bucket, interval",
  goodFor: "Good for bursts, with tokens that arrive in steps, as many at once.",
  letsThrough: "Lets a full bucket through at once, and a new portion at each step.",
};
