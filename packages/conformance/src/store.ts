import { type LeftOut, type Runner, runGroups } from "./groups.js";
import { accountCases } from "./store/accounts.js";
import { blockCases } from "./store/blocks.js";
import { boundedCases, type MakeBoundedStore } from "./store/bounded.js";
import { boundCases } from "./store/bounds.js";
import { chargeCases } from "./store/charges.js";
import { decisionCases } from "./store/decisions.js";
import { holdCases } from "./store/holds.js";
import { inspectingCases } from "./store/inspecting.js";
import { keyCases } from "./store/keys.js";
import { largeCases } from "./store/large.js";
import { planCases } from "./store/plans.js";
import { refundCases } from "./store/refunds.js";
import { settlingCases } from "./store/settling.js";
import { severalCases } from "./store/several.js";
import { slotCases } from "./store/slots.js";
import { vectorCases } from "./store/vectors.js";
import { inWorld, type MakeStore, type Suite } from "./store/world.js";

export type { LeftOut, Runner } from "./groups.js";
export type { MakeBoundedStore } from "./store/bounded.js";
export type { ClosableStore, MakeStore } from "./store/world.js";

/** The subjects of the suite. `makeBoundedStore` adds one: "a full store". */
export type StoreGroup =
  | "vectors"
  | "algorithms"
  | "decisions"
  | "large numbers"
  | "refunds"
  | "settle"
  | "consumeAll"
  | "charges"
  | "accounts"
  | "plans"
  | "keys"
  | "blocks"
  | "keyState"
  | "slots"
  | "holds";

const groups: Record<StoreGroup, (suite: Suite) => void> = {
  vectors: vectorCases,
  algorithms: boundCases,
  decisions: decisionCases,
  "large numbers": largeCases,
  refunds: refundCases,
  settle: settlingCases,
  consumeAll: severalCases,
  charges: chargeCases,
  accounts: accountCases,
  plans: planCases,
  keys: keyCases,
  blocks: blockCases,
  keyState: inspectingCases,
  slots: slotCases,
  holds: holdCases,
};

/** The store under test. */
export interface StoreConformanceOptions {
  /** Shown in the test titles. */
  readonly name: string;
  /**
   * Makes an empty store, or a promise of one, that reads the time from `clock` (whole milliseconds). Called once per test.
   * Turn off any cache of rejections: every request must reach the store. After the test, `close` is called if the store has it.
   */
  readonly makeStore: MakeStore;
  /** Makes an empty store that keeps at most `maxKeys` keys. Set it if your store evicts keys: the suite then also tests a full store. */
  readonly makeBoundedStore?: MakeBoundedStore;
  /** Groups that the store cannot pass, each with the reason, which the report prints. */
  readonly leaveOut?: LeftOut<StoreGroup>;
  /** The part of the random runs to do, above 0, at most 1: less if other tests cover what differs. Default 1. */
  readonly effort?: number;
}

/** The timeout of one test. Generous, for stores that need a network round trip per decision. */
const timeoutMs = 120_000;

/**
 * Tests a store against the contract: worked examples, properties over random policies and arrivals, hostile keys and clocks.
 * `runner` is `{ describe, it }` of Vitest, Jest or `node:test`. The suite sets the clock itself, so no test waits.
 *
 *     storeConformance({ describe, it }, { name: "memory store", makeStore: (clock) => memoryStore({ clock }) });
 */
export function storeConformance(runner: Runner, { name, makeStore, makeBoundedStore, effort, leaveOut }: StoreConformanceOptions): void {
  const suite: Suite = { it: (name, body) => void runner.it(name, () => inWorld(makeStore, body, effort), timeoutMs) };
  const bounded = makeBoundedStore && { "a full store": (suite: Suite) => boundedCases(suite, makeBoundedStore) };
  runGroups(runner, name, { ...groups, ...bounded }, suite, leaveOut);
}
