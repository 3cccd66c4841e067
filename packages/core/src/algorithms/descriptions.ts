import { formatDuration } from "../support/duration.js";
import { calendarUnits, isUsualStart, weekdays } from "./calendar.js";
import { maxHeld } from "./held-units.js";
import type { AlgorithmName, Algorithms, Policy } from "./registry.js";

/** Describes one option of a policy, for rules files, their schema and the docs. */
export interface OptionDescription {
  /** A whole number of at least `least`, a duration, true or false, any text, or one of a few words and numbers. */
  readonly type: "whole number" | "duration" | "flag" | "text" | readonly (string | number)[];
  /** The smallest whole number that is allowed. Default 1. */
  readonly least?: number;
  /** An example of the value, as a rules file writes it. */
  readonly example: string;
  readonly description: string;
  /** Whether the option may be left out. */
  readonly optional?: true;
}

/** A description for every option. */
export type OptionDescriptions<Options> = { readonly [Option in keyof Options]-?: OptionDescription };

// Options that several algorithms share.

const limitOption: OptionDescription = {
  type: "whole number",
  least: 0,
  example: "100",
  description: "The maximum number of units in a window. 0 rejects every request.",
};

const windowOption: OptionDescription = { type: "duration", example: "1m", description: "The length of a window." };

const capacityOption: OptionDescription = {
  type: "whole number",
  least: 0,
  example: "20",
  description: "The maximum number of tokens in the bucket, or of requests in the queue. 0 rejects every request.",
};

const everyOption: OptionDescription = { type: "duration", example: "1s", description: "The period of `refill` or `leak`." };

/** Every algorithm in words, apart from the code that decides: apps that only decide do not carry them. */
export const descriptions: {
  readonly [Name in keyof Algorithms]: {
    /** One sentence for editors and docs. */
    readonly description: string;
    readonly options: OptionDescriptions<Parameters<Algorithms[Name]["make"]>[0]>;
  };
} = {
  "fixed-window": {
    description: "A count that restarts with each window. The cheapest algorithm.",
    options: { limit: limitOption, window: windowOption },
  },
  "sliding-window-log": {
    description: "A log of all units in the window. Exact, but uses the most memory.",
    options: {
      limit: limitOption,
      window: windowOption,
      countRejected: {
        type: "flag",
        example: "true",
        description: "Whether rejected requests count too. Default false.",
        optional: true,
      },
    },
  },
  "sliding-window-counter": {
    description: "Counts of sub-windows. Estimates a sliding window with little memory.",
    options: {
      limit: limitOption,
      window: windowOption,
      buckets: {
        type: "whole number",
        example: "6",
        description: "How many equal parts the window is divided into: more parts are more exact. Default 1.",
        optional: true,
      },
      strict: {
        type: "flag",
        example: "true",
        description:
          "Whether the oldest part counts in full until it has left the window, so that no window holds more than the limit. Default false.",
        optional: true,
      },
    },
  },
  "token-bucket": {
    description: "A bucket that refills at a constant rate. A burst may use all its tokens at once.",
    options: {
      capacity: capacityOption,
      refill: { type: "whole number", example: "10", description: "The number of tokens added per `every`." },
      every: everyOption,
      style: {
        type: ["smooth", "interval"],
        example: "interval",
        description: "smooth adds tokens continuously; interval adds them at the end of each `every`. Default smooth.",
        optional: true,
      },
    },
  },
  "leaky-bucket": {
    description: "A queue that drains at a constant rate. It delays requests, and rejects them when it is full.",
    options: {
      capacity: capacityOption,
      leak: { type: "whole number", example: "5", description: "The number of requests that leave the queue per `every`." },
      every: everyOption,
      maxDelayMs: {
        type: "whole number",
        least: 0,
        example: "5000",
        description: "The maximum wait in milliseconds. A request that would wait longer is rejected.",
        optional: true,
      },
    },
  },
  gcra: {
    description: "A constant rate with room for a burst.",
    options: {
      limit: limitOption,
      window: windowOption,
      burst: {
        type: "whole number",
        example: "20",
        description: "The maximum number of units at once. Default: the limit.",
        optional: true,
      },
    },
  },
  "calendar-window": {
    description: "A count that restarts with each hour, day, week, month or year of a time zone. For quotas.",
    options: {
      limit: limitOption,
      per: { type: calendarUnits, example: "month", description: "The unit of the calendar." },
      timeZone: {
        type: "text",
        example: "Europe/Berlin",
        description: "The IANA time zone whose clocks and dates count. Default UTC.",
        optional: true,
      },
      startsOn: {
        type: [...weekdays, ...Array.from({ length: 31 }, (_, i) => i + 1)],
        example: "15",
        description:
          "The first day of a week (default monday) or of a month (1 to 31, default 1). A month without that day begins on its last.",
        optional: true,
      },
    },
  },
  concurrency: {
    description: "The number of requests in flight. A slot is given back when its request ends.",
    options: {
      limit: { ...limitOption, example: "10", description: `The most requests at once, up to ${maxHeld}. 0 rejects every request.` },
      hold: {
        type: "duration",
        example: "30s",
        description: "After what time a slot comes back that is neither given back nor renewed, because its process died.",
      },
    },
  },
};

type PolicyOf<Name extends AlgorithmName> = Extract<Policy, { readonly algorithm: Name }>;

/** The numbers of each kind of policy in words. */
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

/** A policy in words: `100 per 1m, fixed-window`. */
export function policyText(policy: Policy): string {
  return `${describePolicy(policy)}, ${policy.algorithm}`;
}
