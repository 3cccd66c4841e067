// Policies

export type { Algorithm, Cells, PolicyBase } from "./algorithms/algorithm.js";
export { type FixedWindowPolicy, fixedWindow } from "./algorithms/fixed-window.js";
export { type GcraPolicy, gcra } from "./algorithms/gcra.js";
export { type LeakyBucketPolicy, leakyBucket } from "./algorithms/leaky-bucket.js";
export { type SlidingWindowCounterPolicy, slidingWindowCounter } from "./algorithms/sliding-window-counter.js";
export { type SlidingWindowLogPolicy, slidingWindowLog } from "./algorithms/sliding-window-log.js";
export { type TokenBucketPolicy, tokenBucket } from "./algorithms/token-bucket.js";
export { type Clock, wholeMsClock } from "./clock.js";

// Limiters and decisions
export { type CombinedDecision, type Decision, moreRestrictive, mostRestrictive } from "./decision.js";
export { type Duration, type DurationText, parseDuration } from "./duration.js";
export { type ErrorCode, FloodgateError } from "./errors.js";
export type { DecisionEvent, EventListener, EvictionEvent, FloodgateEvent, RefundEvent, RefundFailedEvent } from "./events.js";
export type { ClientIpOption } from "./http/client-ip.js";
export type { Header, HeaderFormat, HeadersOption } from "./http/headers.js";
export { problemType } from "./http/problem.js";
// For adapters: the rate limit of a web app without its framework
export {
  clientClosedRequest,
  type Outcome,
  RateLimit,
  type RateLimitOptions,
  type RequestReader,
} from "./http/rate-limit.js";
export { decisionOf } from "./http/visits.js";
export { Waiting } from "./http/waiting.js";
export { encodeKey, type Key, type KeyPart } from "./key.js";
export { createLimit, type Limit } from "./limit.js";
export { consumeAll, createLimiter, type Limiter, type LimiterCheck, type LimiterOptions } from "./limiter.js";
export { checkOptions, functionOrNothing, wholeNumber } from "./options.js";
export { type Policy, type PolicyOptions, toPolicy } from "./policy.js";
export type { KeyFunction, KeyInfo, KeyName, KeyOption } from "./rules/key-source.js";
export type { Match } from "./rules/match.js";
export type { LimitOptions, OnMissingKey, Promised, Rule } from "./rules/rule.js";
// For stores
export type { Answer, Check, Mode, Store } from "./store.js";
export { isPromise } from "./store.js";
