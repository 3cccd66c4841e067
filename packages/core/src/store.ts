// For authors of stores, beside what `index.ts` exports.
// biome-ignore-all assist/source/organizeImports: grouped by subject

// The contract
export {
  type Answer,
  type Blocked,
  type BlockKind,
  type Check,
  type Decided,
  type Inspection,
  type Mode,
  type Store,
  scopeOf,
} from "./stores/store.js";
export { createLimit, type Limit, whyNoLease } from "./limits/limit.js";
export { type Decision, mostRestrictive } from "./limits/decision.js";
export { encodeKey } from "./limits/key.js";

// The algorithms, which work on cells of state
export { type Algorithm, type Cells, decision, type PolicyBase } from "./algorithms/algorithm.js";
export { algorithmOf, allAlgorithms } from "./algorithms/registry.js";

// Several limits in one atomic step
export { type DecideOne, decideAll, passesAll } from "./limits/all-or-nothing.js";

// Blocks and bans
export {
  blockCells,
  blockedDecision,
  blockedMs,
  blockIn,
  blockOf,
  blocksOf,
  isBlocked,
  liftBanIn,
} from "./limits/blocks.js";

// Inspection
export { inspectIn } from "./limits/inspection.js";

// Charges: what refunds and settlements need
export { asCharge, beganState, type Charge, inState, type ReceiptMark, restated, settleIn } from "./limits/charge.js";

// Time
export { type Clock, wholeMsClock } from "./support/clock.js";
export { Deadlines, latestMs, msLeft, type Waiter } from "./stores/deadlines.js";
export { runningMs } from "./stores/running-clock.js";

// Failures and events
export { failedIn } from "./stores/breakers.js";
export type { BreakerState } from "./limits/events.js";
export type { FailureOptions } from "./stores/failure-options.js";
export type { EvictionEvent } from "./limits/events.js";
export { heard, listenerOf } from "./limits/listeners.js";

// Options
export { checkOptions, functionOrNothing, wholeNumber } from "./support/options.js";
