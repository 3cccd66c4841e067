// biome-ignore-all assist/source/organizeImports: grouped by who needs it

// Policies
export { fixedWindow, type FixedWindowPolicy } from "./algorithms/fixed-window.js";
export { slidingWindowLog, type SlidingWindowLogPolicy } from "./algorithms/sliding-window-log.js";
export { slidingWindowCounter, type SlidingWindowCounterPolicy } from "./algorithms/sliding-window-counter.js";
export { tokenBucket, type TokenBucketPolicy } from "./algorithms/token-bucket.js";
export { leakyBucket, type LeakyBucketPolicy } from "./algorithms/leaky-bucket.js";
export { gcra, type GcraPolicy } from "./algorithms/gcra.js";
export { type Policy, type PolicyOptions, toPolicy } from "./algorithms/policy.js";
export { type Duration, type DurationText, parseDuration } from "./support/duration.js";

// Limiters and decisions
export { type CombinedDecision, type Decision, moreRestrictive, mostRestrictive } from "./limits/decision.js";
export { consumeAll, createLimiter, type Limiter, type LimiterCheck, type LimiterOptions } from "./limits/limiter.js";
export type { ReceiptSecret } from "./limits/receipt.js";
export { encodeKey, type Key, type KeyPart, type LimiterKey, type MissingKeyIp } from "./limits/key.js";
export { type ErrorCode, FloodgateError } from "./support/errors.js";
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
} from "./limits/events.js";
export { listenerOf } from "./limits/events.js";

// Where a store fails
export type { BreakerState } from "./stores/breaker.js";
export type { Fallback, FailureOptions, OnStoreError } from "./stores/failure-options.js";

// For stores
export { type DecideOne, decideAll, passesAll } from "./limits/all-or-nothing.js";
export { asCharge, beganState, type Charge, inState, type ReceiptMark, restated, settleIn } from "./limits/charge.js";
export { Deadlines, latestMs, msLeft, type Waiter } from "./stores/deadlines.js";
export { runningMs } from "./stores/running-clock.js";
export { type Answer, type Check, type Mode, type Store, scopeOf } from "./stores/store.js";
export { createLimit, type Limit } from "./limits/limit.js";
export { type Algorithm, type Cells, decision, type PolicyBase } from "./algorithms/algorithm.js";
export { type Clock, wholeMsClock } from "./support/clock.js";

// For adapters: the rate limit of a web app without its framework
export type { Afterwards, RefundWhen } from "./responses/afterwards.js";
export { withFaults } from "./middleware/faults.js";
export { clientClosedRequest, type Outcome, RateLimit } from "./middleware/rate-limit.js";
export type { RateLimitOptions } from "./middleware/rate-limit-options.js";
export type { RequestReader } from "./requests/request-reader.js";
export { type NodeResponse, whenEnded } from "./responses/response-end.js";
export { mostHops, trustsEverybody } from "./requests/everybody.js";
export { parsedPath, sentPath } from "./requests/parsed-target.js";
export type { PossiblePath, RequestPath } from "./rules/path.js";
export type { ClientIpOption } from "./requests/client-ip.js";
export type { Header, HeaderFormat, HeadersOption } from "./responses/headers.js";
export { problemType } from "./responses/problem.js";
export { decisionOf } from "./requests/visits.js";
export { type RateLimitControls, withControls } from "./middleware/controls.js";
export { Waiting } from "./responses/waiting.js";
export { warnOnce } from "./support/warn.js";
export { isBuiltInKey, type KeyFunction, type KeyInfo, type KeyName, type KeyOption, parseKeyName } from "./requests/key-source.js";
export type { Match } from "./rules/match.js";
export type { BanOptions } from "./rules/ban.js";
export type { CostFunction, ResponseInfo } from "./rules/cost.js";
export type { Exempt } from "./rules/exempt.js";
export type { PlanNumbers, PlanOptions } from "./rules/plans.js";
export type { LimitOptions, OnMissingKey, Rule } from "./rules/rule.js";
export type { Promised } from "./support/promises.js";

// For sources of rules
export { holdEverybody } from "./requests/everybody.js";
export { type AppNames, checkRules } from "./rules/validate.js";
export { compilePlans } from "./rules/plans.js";
export type { PlainRule } from "./rules/rule.js";
export type { RuleSet, RuleSource, RuleUser } from "./rules/source.js";

// For tools: rules looked into beside a middleware, and addresses as it counts them
export { type Explanation, InspectedRules, type NotCounted } from "./rules/inspected-rules.js";
export type { Ban } from "./rules/ban.js";
export type { CompiledRule, RuleCheck } from "./rules/compiled-rule.js";
export { ipKey } from "./requests/ip.js";

// For both: options are checked alike everywhere
export { checkOptions, functionOrNothing, nearest, wholeNumber } from "./support/options.js";
export { isPromise } from "./support/promises.js";
