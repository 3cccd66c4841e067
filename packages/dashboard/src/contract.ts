// The JSON between the server and the page. The page imports nothing else of the server. All addresses are relative to the mount path.
//
//   GET  ./                        the page: one file, with its styles, its script, and the nonce of this answer
//   GET  ./data/overview           Overview
//   GET  ./data/history?range=     History: "minute" (default), "hour" or "day"
//   GET  ./data/live               server-sent events: `figures` with a LiveFigures, at once and then each second
//   POST ./data/key                KeyQuery  -> KeyAnswer
//   POST ./data/request            RequestQuery -> RequestAnswer
//   POST ./actions/reset           KeyTarget -> KeyAnswer, the state afterwards
//   POST ./actions/block           BlockTarget -> KeyAnswer
//   POST ./actions/unblock         KeyTarget -> KeyAnswer
//   POST ./actions/grant           GrantTarget -> KeyAnswer
//   POST ./actions/revoke          KeyTarget -> KeyAnswer
//
// A POST needs `Content-Type: application/json`. The key is in the body, so that it stands in no access log.
// Each refusal is a Problem with a status of 400 or more: 400 invalid, 403 not allowed, 404 unknown, 405, 413, 415, 429 too many streams, 502 the store failed.
//
// Instants end in `AtMs` or are named `…Ms`, in milliseconds since the epoch by the server's clock. Durations end in `Ms` too.
// JSON has no Infinity: a wait that never ends is null.
// Every text (names, keys, reasons) may hold anything that a client sent. Write it with `textContent`, never as markup.

import type { Decision, StateView } from "@floodgate/core";

/**
 * What became of a request, under one rule or as a whole. A request has one result, so results can be stacked. `exempt`: it passed uncounted. Its
 * client is exempt, it has no key and the rule says "skip", the option `skip` says so, or no rule applies. `failed-…` and `fallback-…`: decided
 * without the store.
 */
export type Result = (typeof results)[number];

/** All results, from the bottom of a stack to its top. */
export const results = [
  "allowed",
  "exempt",
  "delayed",
  "fallback-allowed",
  "failed-open",
  "shadow-limited",
  "missing-key",
  "ambiguous-path",
  "failed-closed",
  "fallback-limited",
  "blocked",
  "banned",
  "limited",
] as const;

/** The results of requests that were rejected. */
export const rejections: readonly Result[] = results.slice(results.indexOf("missing-key"));

/**
 * The name under which whole requests are counted, each once, whatever the number of rules. It stands among the rules of totals, histories and
 * ticks. No rule has this name.
 */
export const wholeRequests = "";

/** Requests by result. A result that did not occur is left out. */
export type Counts = { readonly [R in Result]?: number };

export interface Overview {
  /** What the app calls itself; `"Floodgate"` unless said. */
  readonly title: string;
  /** The server's time when this was written. Show times relative to it, because the browser's clock may differ. */
  readonly nowMs: number;
  readonly capabilities: Capabilities;
  readonly scope: Scope;
  /** Every rule and limiter that exists now, in the order they were created; then those that no longer exist but have counts. */
  readonly rules: readonly RuleInfo[];
  /** Of whole requests and per rule, since `scope.sinceMs`. */
  readonly totals: readonly RuleTotals[];
  readonly top: Top;
  readonly stores: readonly StoreInfo[];
  readonly sources: readonly SourceInfo[];
  /** The processes behind the figures, this one first. Only this one without `redis`. */
  readonly instances: readonly InstanceInfo[];
}

export interface Capabilities {
  /** Whether reset, block, unblock, grant and revoke are allowed. Else show no buttons. */
  readonly actions: boolean;
  /** `masked`: keys are shown as `203.0.113.x`. A key can still be looked up by typing it, or by the `id` of a top key. */
  readonly keys: "masked" | "shown";
}

export interface Scope {
  /** `process`: the figures are of this process alone. `all`: they are the sum of all processes that share the Redis. */
  readonly kind: "process" | "all";
  /** Why the figures are of this process alone although a `redis` was given: "Redis does not answer (…)". Undefined if all is well. */
  readonly trouble?: string | undefined;
  readonly sinceMs: number;
}

export interface RuleInfo {
  /** Two rules may have one name, on different stores. They are counted together. */
  readonly name: string;
  /** `rule`: of a middleware. `limiter`: made with createLimiter. `gone`: it no longer exists, or exists in other processes only. */
  readonly kind: "rule" | "limiter" | "gone";
  readonly mode: "enforce" | "shadow";
  /** In words: "100 per 1m, sliding-window-counter". "set by a function of the request" if one makes it. "" if it is gone. */
  readonly policy: string;
  /** In words: "POST /posts", "all requests", "a function". Undefined for limiters. */
  readonly match?: string | undefined;
  /** In words: "ip", "user", "a function". Undefined for limiters. */
  readonly key?: string | undefined;
  /** Plans in words. Empty if the rule has none. */
  readonly plans: readonly { readonly name: string; readonly policy: string }[];
  /** The ban in words. Undefined if the rule has none. */
  readonly ban?: string | undefined;
  /** The `id` of its live source, as in `Overview.sources`. Undefined for rules in code. */
  readonly source?: string | undefined;
  /** The version of the source that is in force. Undefined for rules in code. */
  readonly version?: string | undefined;
}

export interface RuleTotals {
  readonly rule: string;
  readonly counts: Counts;
  readonly units: { readonly asked: number; readonly charged: number };
  readonly bans: number;
}

export type Range = "minute" | "hour" | "day";

/** The points of a range. Only steps that have ended are in it, so the newest point is complete. */
export interface History {
  readonly range: Range;
  /** The first step's start. A whole multiple of `stepMs`. */
  readonly startMs: number;
  /** 1000 for a minute, 10,000 for an hour, 60,000 for a day. Ask for the hour and the day again when a step has passed. */
  readonly stepMs: number;
  /** The number of steps: 60, 360 or 1440. Steps before the process started are 0. */
  readonly points: number;
  readonly rules: readonly RuleHistory[];
  /** The busiest second of each minute of the range over all rules, oldest first. Minutes without a request are left out. */
  readonly bursts: readonly Burst[];
}

export interface RuleHistory {
  readonly rule: string;
  /** Requests per step (not per second), one number a point. A result that did not occur in the range is left out. */
  readonly series: { readonly [R in Result]?: readonly number[] };
}

/**
 * One minute and its busiest second, of whole requests. With several processes, each one's busiest second is known, but not what the others
 * counted in it. So the true number is between `count` (of the busiest process) and `atMost` (the sum).
 */
export interface Burst {
  readonly minuteMs: number;
  readonly secondMs: number;
  readonly count: number;
  /** Equal to `count` for one process. */
  readonly atMost: number;
  /** How many of `count` were rejected. */
  readonly limited: number;
  readonly inMinute: number;
}

export interface Top {
  readonly byRequests: TopList;
  /** What shadow rules would have rejected is counted too. */
  readonly byRejections: TopList;
}

/** The heaviest keys since `sinceMs`, from a Space-Saving sketch. */
export interface TopList {
  /** The counts began here. */
  readonly sinceMs: number;
  /** Heaviest first, at most 20. */
  readonly keys: readonly TopKey[];
}

export interface TopKey {
  readonly rule: string;
  /** The key as it may be shown: masked unless `capabilities.keys` is `shown`. Two keys may look alike when masked. */
  readonly key: string;
  /** Opaque. It looks the key up in place of the key itself, as long as the process runs. */
  readonly id: string;
  /** The estimate. The true count is in [count - error, count]. */
  readonly count: number;
  readonly error: number;
  /** The block or ban of the key, as its last rejection showed it, unless that is over. */
  readonly blocked?: { readonly kind: "block" | "ban"; readonly untilMs: number } | undefined;
}

export interface StoreInfo {
  /** Stable while the process runs. */
  readonly id: string;
  /** "memory", "redis", or the class of another store. */
  readonly kind: string;
  readonly rules: readonly string[];
  /** Undefined if the store has no breaker (memory). */
  readonly breaker?: "closed" | "open" | "half-open" | undefined;
  /** Keys held now. Undefined if the store does not know. */
  readonly size?: number | undefined;
  /** Decision time over the last minute. Undefined if nothing was decided in it, or if the store is in this process. */
  readonly latency?: Latency | undefined;
  /** Failures since `scope.sinceMs`, by error code; `"other"` if it has none. */
  readonly errors: readonly { readonly code: string; readonly count: number }[];
  /** Keys that had to go although they had not expired, since `scope.sinceMs`. */
  readonly evictions: number;
}

/** From a histogram with steps of a factor of √2, so a percentile is at most 42 % too high and never too low. */
export interface Latency {
  readonly count: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export interface SourceInfo {
  /** Stable while the process runs. */
  readonly id: string;
  /** "limits.yaml". "rules" if the source does not say. */
  readonly name: string;
  /** The version in force. Undefined if the source does not say. */
  readonly version?: string | undefined;
  /** The last version that was refused, unless a later one is in force. */
  readonly refused?: { readonly atMs: number; readonly reason: string } | undefined;
}

export interface InstanceInfo {
  readonly id: string;
  /** "web-1 (pid 4242)". */
  readonly name: string;
  /** Whether this process wrote the answer. */
  readonly self: boolean;
  readonly sinceMs: number;
  /** Requests in the last second that has ended. */
  readonly perSecond: number;
}

/** All figures of one moment. Each is whole: the page needs no earlier one, so it can miss some, and adds nothing up itself. */
export interface LiveFigures {
  readonly overview: Overview;
  readonly minute: History;
}

/** A key is the text as the app knows it ("42"), a tuple of texts, or the `id` of a top key. An address is normalised as by the middleware. */
export type KeyName = { readonly key: string | readonly string[] } | { readonly id: string };

/** Asks for a key's state under one rule, or under all. */
export type KeyQuery = KeyName & { readonly rule?: string };

export type KeyTarget = KeyName & { readonly rule: string };

/** Block for `forMs`: a whole number from 1000 to 31,622,400,000 (366 days). */
export type BlockTarget = KeyTarget & { readonly forMs: number };

/** Another plan of the rule until `untilMs`, an instant in the future. Only under rules for which `KeyRuleState.mayGrant` lists plans. */
export type GrantTarget = KeyTarget & { readonly plan: string; readonly untilMs: number };

/** Asks what the rules of the process would say of a request. Nothing is charged, and no function of the app is called. */
export interface RequestQuery {
  readonly method: string;
  /** A full path, with its query if it has one. */
  readonly path: string;
  readonly headers?: { readonly [name: string]: string };
  readonly ip?: string;
  readonly plan?: string;
  /** The values of the app's own keys, by name; of a key that is a function, by the rule's name. */
  readonly keys?: { readonly [name: string]: string };
}

export interface RequestAnswer {
  /** What the client would get: "would be rejected with 429 by posts. It would pass in 59m". */
  readonly verdict: string;
  readonly rules: readonly RequestReason[];
}

export interface RequestReason {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  readonly counts: boolean;
  /** "rejects: banned, for 1h"; or why the rule does not count the request. */
  readonly words: string;
  /** If it counts. The key as it may be shown. */
  readonly key?: string;
  readonly policy?: string;
  readonly cost?: number;
  readonly used?: number;
  readonly limit?: number;
}

export interface KeyAnswer {
  readonly key: string;
  readonly states: readonly KeyRuleState[];
}

export interface KeyRuleState {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  /** Whether the state is of all processes (Redis). Else it is in the memory of the process that answered. */
  readonly shared: boolean;
  /** Why the state could not be read. Then the rest is undefined. */
  readonly failed?: string;
  /** The store's time when it was read. */
  readonly atMs?: number;
  /** Rejections of the key in about the last hour, as `Top.byRejections` counts them. The true count is in [count - error, count]. */
  readonly rejections?: { readonly count: number; readonly error: number; readonly sinceMs: number };
  /** The plan that the key has for a time. */
  readonly grant?: { readonly plan: string; readonly untilMs: number } | undefined;
  /** The plans that may be granted. Undefined if the rules cannot be written from here. */
  readonly mayGrant?: readonly string[] | undefined;
  /** What a request of cost 1 would get now; under the granted plan, if there is one. */
  readonly decision?: Pick<Decision, "allowed" | "limit" | "remaining" | "delayMs"> & {
    /** Null: never. */
    readonly retryAfterMs: number | null;
    readonly resetAfterMs: number | null;
  };
  /** The states of the rule's policy, and of each plan. Plans with the same times share one state. */
  readonly states?: readonly PolicyState[];
  readonly block?: { readonly untilMs: number } | undefined;
  /** Banned after repeated rejections until then. */
  readonly ban?: { readonly untilMs: number } | undefined;
}

export interface PolicyState {
  /** The plan whose policy this is. Undefined for the rule's own. */
  readonly plan?: string | undefined;
  /** In words, as `RuleInfo.policy`. */
  readonly policy: string;
  readonly state: StateView;
}

/** Every answer with a status of 400 or more, once the caller is authorized. */
export interface Problem {
  readonly error: {
    /** A `FLOODGATE_…` code, or a word: `invalid`, `forbidden`, `unknown`, `method`, `too-large`, `too-many-streams`, `store`. */
    readonly code: string;
    readonly message: string;
  };
}
