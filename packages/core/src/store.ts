// For authors of stores, beside what `index.ts` exports.
// biome-ignore-all assist/source/organizeImports: grouped by subject

// The contract
export {
  type Answer,
  type Blocked,
  decideAll,
  type DecideOne,
  type Decided,
  type Inspection,
  type Mode,
  type Store,
  renewingStore,
  scopeOf,
} from "./decide/store.js";
export { type Check, createLimit, type Decision, type Limit, mostRestrictive, passesAll } from "./decide/decision.js";
export { encodeKey } from "./limits/key.js";

// The algorithms, which work on cells of state
export type { Algorithm, BlockKind, Cells, KeyBlock, PolicyBase } from "./algorithms/algorithm.js";
export { decision } from "./algorithms/decision.js";
export { algorithmOf, heldPolicy, whyNoLease } from "./algorithms/registry.js";
export { allAlgorithms } from "./algorithms/all.js";

export type { FixedWindowPolicy } from "./algorithms/fixed-window.js";
export type { SlidingWindowLogPolicy } from "./algorithms/sliding-window-log.js";
export type { SlidingWindowCounterPolicy } from "./algorithms/sliding-window-counter.js";
export type { TokenBucketPolicy } from "./algorithms/token-bucket.js";
export type { LeakyBucketPolicy } from "./algorithms/leaky-bucket.js";
export type { GcraPolicy } from "./algorithms/gcra.js";
export type { ConcurrencyPolicy } from "./algorithms/concurrency.js";
export type { CalendarWindowPolicy } from "./algorithms/calendar-window.js";

// Blocks and bans
export {
  blockCells,
  blockedDecision,
  blockIn,
  blockOf,
  blocksOf,
  keyBlockIn,
  liftBanIn,
  outlastsMs,
} from "./decide/blocks.js";

// Inspection
export { inspectIn } from "./decide/inspection.js";

// Charges: what refunds and settlements need
export type { Charge, ReceiptMark } from "./algorithms/algorithm.js";
export { asCharge, inState, copyWith } from "./algorithms/decision.js";
export { beganByCharge, beganState, nothingReserved, renewIn, settleIn } from "./decide/charge.js";

// Time
export { type Clock, wholeMsClock } from "./support/clock.js";
export { addWaiter, atMost, msLeft, unblockedMs, Waiter } from "./failure/deadlines.js";
export { ServerClock } from "./support/clock.js";

// Failures and events
// Also in `index.ts`. A store that takes it from here is bundled without the rest of that.
export { FloodgateError, invalidOption, reasonOf, wrongOption } from "./support/errors.js";
export { failedIn } from "./failure/breaker.js";
export type { BreakerState } from "./events/events.js";
export type { FailureOptions } from "./failure/store-guard.js";
export type { EvictionEvent } from "./events/events.js";
export { activeListener, listenerOf } from "./events/listeners.js";
export { WeakScopes } from "./support/maps.js";
export { warnOnce } from "./support/warn.js";

// Options
export { checkOptions, flag, functionOrNothing, wholeNumber } from "./support/options.js";

// The runtime: what Node, Bun, Deno and edge runtimes do differently
export {
  afterTurn,
  inThisContext,
  nodeCrypto,
  type NodeCrypto,
  type NodeHash,
  startTimer,
  stopTimer,
  workEndsWithRequest,
} from "./support/runtime.js";
