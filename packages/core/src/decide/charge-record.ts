import { type ChargeParts, MadeDecision } from "../algorithms/decision.js";
import type { LocalUsage } from "../failure/unreported-usage.js";
import type { Charge, ReceiptMark } from "./charge.js";
import type { Decision } from "./decision.js";
import type { Limit } from "./limit.js";
import type { Mode, Store } from "./store.js";

/** `undefined` while the charge can be settled. With `fault` the store failed, and may or may not have settled it. */
type Fate = undefined | "settled" | { readonly fault: unknown };

/** The only record of a charge. Only its own decision object leads to it, so copies of the decision have no charge. */
export class ChargeRecord implements Charge {
  readonly cost: number;
  readonly atMs: number;
  readonly state: number | undefined;
  readonly limit: Limit;
  readonly key: string;
  /** The guard that decided; it also settles. */
  guard: Store<Mode> | undefined;
  /** Set if a fallback charged: the fallback's usage of the key. */
  readonly localUsage: LocalUsage | undefined;
  fate: Fate = undefined;
  /** `issued`: the mark of the receipt, once one was issued. `receipt`: the same, once the store must redeem by it. */
  issued: ReceiptMark | undefined = undefined;
  receipt: ReceiptMark | undefined = undefined;

  constructor({ cost, atMs, state, limit, key, guard }: ChargeParts, localUsage?: LocalUsage) {
    this.cost = cost;
    this.atMs = atMs;
    this.state = state;
    this.limit = limit as Limit;
    this.key = key;
    this.guard = guard as Store<Mode> | undefined;
    this.localUsage = localUsage;
  }
}

// Direct aliases of static methods, without wrappers: they run for every decision.

/** The decision as one that can have a charge; copies it if the store made its own object. */
export const owned: (made: Decision) => Decision = MadeDecision.owned;

/** Attaches a charge of a key under a limit to a decision. */
export const charged: (made: Decision, limit: Limit, key: string, guard: Store<Mode>) => Decision = MadeDecision.charged;

/** Attaches a charge that a fallback made. */
export function chargedLocally(made: Decision, limit: Limit, key: string, localUsage: LocalUsage): Decision {
  const own = MadeDecision.charged(made, limit, key, undefined);
  MadeDecision.recordOf(own, (parts) => new ChargeRecord(parts, localUsage));
  return own;
}

/** Whether a decision has charged a key. */
export const hasCharge: (decision: Decision) => boolean = MadeDecision.hasCharge;

/** The charge of a decision; undefined if it charged nothing, `"copy"` if the value is not an original decision. */
export function chargeOf(value: unknown): ChargeRecord | undefined | "copy" {
  return MadeDecision.recordOf(value, (parts) => new ChargeRecord(parts));
}
