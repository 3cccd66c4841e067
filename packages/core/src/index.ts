// biome-ignore-all assist/source/organizeImports: grouped by who needs it

// Policies
export { fixedWindow, type FixedWindowPolicy } from "./algorithms/fixed-window.js";
export { slidingWindowLog, type SlidingWindowLogPolicy } from "./algorithms/sliding-window-log.js";
export { slidingWindowCounter, type SlidingWindowCounterPolicy } from "./algorithms/sliding-window-counter.js";
export { tokenBucket, type TokenBucketPolicy } from "./algorithms/token-bucket.js";
export { leakyBucket, type LeakyBucketPolicy } from "./algorithms/leaky-bucket.js";
export { gcra, type GcraPolicy } from "./algorithms/gcra.js";
export { type Policy, type PolicyOptions, toPolicy } from "./policy.js";
export { type Duration, type DurationText, parseDuration } from "./duration.js";

// Limiters and decisions
export { type CombinedDecision, type Decision, moreRestrictive, mostRestrictive } from "./decision.js";
export { consumeAll, createLimiter, type Limiter, type LimiterCheck, type LimiterOptions } from "./limiter.js";
export type { ReceiptSecret } from "./receipt.js";
export { encodeKey, type Key, type KeyPart, type LimiterKey, type MissingKeyIp } from "./key.js";
export { type ErrorCode, FloodgateError } from "./errors.js";
export type {
  BanEvent,
  BreakerEvent,
  DecisionEvent,
  EventListener,
  EvictionEvent,
  FloodgateEvent,
  MissingKeyEvent,
  RefundEvent,
  RefundFailedEvent,
  RulesEvent,
  RulesRefusedEvent,
  RulesReloadedEvent,
  SettleEvent,
  SettleFailedEvent,
  StoreErrorEvent,
  WarningEvent,
} from "./events.js";
export { listenerOf } from "./events.js";

// Where a store fails
export type { BreakerState } from "./failure/breaker.js";
export type { Fallback, FailureOptions, OnStoreError } from "./failure/failure-options.js";

// For stores
export { asCharge, beganState, type Charge, inState, type ReceiptMark, restated, settleIn } from "./charge.js";
export { Deadlines, latestMs, msLeft, type Waiter } from "./failure/deadlines.js";
export { runningMs } from "./failure/running-clock.js";
export { type Answer, type Check, type Mode, type Store, scopeOf } from "./store.js";
export { createLimit, type Limit } from "./limit.js";
export { type Algorithm, type Cells, decision, type PolicyBase } from "./algorithms/algorithm.js";
export { type Clock, wholeMsClock } from "./clock.js";

// For adapters: the rate limit of a web app without its framework
export type { Afterwards, RefundWhen } from "./http/afterwards.js";
export { withFaults } from "./http/faults.js";
export { clientClosedRequest, type Outcome, RateLimit } from "./http/rate-limit.js";
export type { RateLimitOptions } from "./http/rate-limit-options.js";
export type { RequestReader } from "./http/request-reader.js";
export { type NodeResponse, whenEnded } from "./http/response-end.js";
export { mostHops, trustsEverybody } from "./everybody.js";
export { parsedPath, sentPath } from "./http/parsed-target.js";
export type { PossiblePath, RequestPath } from "./rules/path.js";
export type { ClientIpOption } from "./http/client-ip.js";
export type { Header, HeaderFormat, HeadersOption } from "./http/headers.js";
export { problemType } from "./http/problem.js";
export { decisionOf } from "./http/visits.js";
export { type RateLimitControls, withControls } from "./http/controls.js";
export { Waiting } from "./http/waiting.js";
export { warnOnce } from "./warn.js";
export { isBuiltInKey, type KeyFunction, type KeyInfo, type KeyName, type KeyOption, parseKeyName } from "./rules/key-source.js";
export type { Match } from "./rules/match.js";
export type { BanOptions } from "./rules/ban.js";
export type { CostFunction, ResponseInfo } from "./rules/cost.js";
export type { Exempt } from "./rules/exempt.js";
export type { PlanNumbers, PlanOptions } from "./rules/plans.js";
export type { LimitOptions, OnMissingKey, Promised, Rule } from "./rules/rule.js";

// For sources of rules
export { holdEverybody } from "./everybody.js";
export { type AppNames, checkRules } from "./rules/check-rules.js";
export { compilePlans } from "./rules/plans.js";
export type { PlainRule } from "./rules/rule.js";
export type { RuleSet, RuleSource, RuleUser } from "./rules/source.js";

// For tools: rules looked into beside a middleware, and addresses as it counts them
export { type Explanation, InspectedRules, type NotCounted } from "./http/inspected-rules.js";
export type { Ban } from "./rules/ban.js";
export type { CompiledRule, RuleCheck } from "./rules/compiled-rule.js";
export { ipKey } from "./ip.js";

// For both: options are checked alike everywhere
export { checkOptions, functionOrNothing, nearest, wholeNumber } from "./options.js";
export { isPromise } from "./store.js";
