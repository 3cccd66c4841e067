// For apps. Authors of stores, adapters and sources of rules find the rest in `store.ts`, `adapter.ts` and `rules.ts`.
// biome-ignore-all assist/source/organizeImports: grouped by subject

// Policies
export { fixedWindow } from "./algorithms/fixed-window.js";
export { slidingWindowLog } from "./algorithms/sliding-window-log.js";
export { slidingWindowCounter } from "./algorithms/sliding-window-counter.js";
export { tokenBucket } from "./algorithms/token-bucket.js";
export { leakyBucket } from "./algorithms/leaky-bucket.js";
export { concurrency } from "./algorithms/concurrency.js";
export { gcra } from "./algorithms/gcra.js";
export { calendarWindow } from "./algorithms/calendar-window.js";
export type { Policy, PolicyOptions } from "./algorithms/registry.js";
export { type Duration, parseDuration } from "./support/duration.js";

// Limiters and decisions
export { createLimiter, type LimiterOptions } from "./limits/create-limiter.js";
export { consumeAll, type LimiterCheck } from "./limits/consume-all.js";
export type { Limiter, Ran } from "./limits/limiter.js";
export type { CombinedDecision, Decision } from "./decide/decision.js";
export type { Key, LimiterKey } from "./limits/key.js";
export type { KeyState, PolicyState } from "./decide/inspection.js";
export { headersOf, type HeadersOption } from "./responses/headers.js";
export type { StateView } from "./algorithms/algorithm.js";

// Stores
export type { Store } from "./decide/store.js";
export type { OnStoreError } from "./failure/store-guard.js";

// Rules and options of `rateLimit`
export type { Rule } from "./rules/rule.js";
export type { RuleSource } from "./rules/rule.js";
export { clientKey } from "./requests/request-options.js";
export type { KeyFunction } from "./requests/functions.js";
export type { CostFunction } from "./requests/functions.js";
export type { PlanOptions } from "./rules/plans.js";
export type { Exempt } from "./rules/exempt.js";
export type { BanOptions } from "./rules/bans.js";

// Limits of anything that is no HTTP request
export { type LimitFor, limitFor, type LimitForOptions, LimitedError } from "./middleware/limit-for.js";

// Errors and events
export { type ErrorCode, FloodgateError } from "./support/errors.js";
export type { DecisionEvent, EventListener, FloodgateEvent } from "./events/events.js";
export { observe } from "./events/listeners.js";
