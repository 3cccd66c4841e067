import { asCharge } from "../algorithms/decision.js";
import type { Decision } from "../decide/decision.js";
import type { Mode } from "../decide/store.js";
import { andThen, type Promised } from "../support/promises.js";
import type { LimiterKey } from "./key.js";
import type { Limiter, NamedLimiter } from "./limiter.js";
import { isSlot } from "./slots.js";

/**
 * Renews the slots of a receipt, which stays the same: the next renewal and the refund are given the same one, and so is a retry. Slots that had
 * come back are taken again if there is room.
 * @returns whether the slots are held, or nothing was charged because the store had failed; undefined if it is a limit of another kind.
 * @throws FloodgateError `FLOODGATE_INVALID_RECEIPT` as a refund does. If the store fails, it throws or rejects with the fault.
 */
export function renewSlots(limiter: Limiter, key: LimiterKey, receipt: string): Promised<boolean | undefined> {
  const named = limiter as NamedLimiter<Mode>;
  return named.useReceipt<boolean | undefined>(limiter.keyText(key), receipt, (limit, charge) => {
    if (typeof limit === "string") return true;
    if (!isSlot(limit.policy)) return undefined;
    if (charge === undefined || charge.fate !== undefined) return false;
    const renewed = (charge.settler ?? named.guard).renew?.(limit, charge.key, charge) as Promised<Decision | undefined>;
    return andThen<Decision | undefined, boolean>(renewed, (decision) => {
      const held = decision?.allowed === true;
      if (held) Object.assign(charge, asCharge(decision));
      return held;
    });
  });
}
