import { asCharge, chargeOf, hasCharge } from "../algorithms/decision.js";
import { hasSlots, type Policy } from "../algorithms/registry.js";
import type { ChargeRecord, Decision } from "../decide/decision.js";
import type { EventListener } from "../events/events.js";
import { activeListener } from "../events/listeners.js";
import { getOrMake } from "../support/maps.js";
import { andThen, runInBackground } from "../support/promises.js";
import { startTimer, stopTimer, workEndsWithRequest } from "../support/runtime.js";

/** How many slots one turn renews. Decisions that wait for the store go between the turns. */
const perTurn = 256;
const maxTimerMs = 2 ** 30;

type Renewed = Decision | undefined;

/** A slot that is renewed until it is given back. */
interface Slot {
  readonly charge: ChargeRecord;
  /** Is told that the slot came back too early, and whether the request has one again. */
  readonly lost: (counted: boolean) => void;
  /** A renewal in flight. It changes the charge, so it must end before the slot is given back. */
  renewing: PromiseLike<unknown> | undefined;
}

const held = new Set<Slot>();

/** The names of the limits whose slots requests in flight hold in this process, one for each slot. */
export function slotsHeld(): string[] {
  return [...held].map(({ charge }) => charge.limit.name);
}

/** Renews all slots of one store that have the same `hold`, together, three times in that time. */
class SlotRenewer {
  readonly #holdMs: number;
  readonly #slots = new Set<Slot>();
  #timer: unknown;

  constructor(holdMs: number) {
    this.#holdMs = holdMs;
  }

  add(slot: Slot): void {
    this.#slots.add(slot);
    held.add(slot);
    if (this.#timer === undefined) this.#start();
  }

  delete(slot: Slot): void {
    held.delete(slot);
    this.#slots.delete(slot);
    if (this.#slots.size > 0) return;
    stopTimer(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    this.#timer = startTimer(() => this.#renewAll(), Math.min(Math.floor(this.#holdMs / 3), maxTimerMs));
  }

  async #renewAll(): Promise<void> {
    this.#start();
    const due = [...this.#slots].filter(({ renewing }) => !renewing);
    for (let i = 0; i < due.length; i += perTurn) {
      await Promise.all(due.slice(i, i + perTurn).map((slot) => (this.#slots.has(slot) ? this.#renew(slot) : undefined)));
    }
  }

  #renew(slot: Slot): PromiseLike<unknown> | undefined {
    const { charge, lost } = slot;
    const before = charge.atMs;
    const keep = (renewed: Renewed): void => {
      const counted = renewed?.allowed === true;
      if (counted) Object.assign(charge, asCharge(renewed));
      else this.delete(slot);
      if (!counted || charge.atMs - before >= this.#holdMs) lost(counted);
    };
    const renewing = runInBackground(
      () => andThen<Renewed, void>(charge.settler?.renew?.(charge.limit, charge.key, charge), keep),
      // After a fault the slot may have been renewed, or not. The next turn finds out.
      () => undefined,
    );
    slot.renewing = renewing?.then(() => {
      slot.renewing = undefined;
    });
    return slot.renewing;
  }
}

const renewers = new WeakMap<object, Map<number, SlotRenewer>>();

/** Renews the slot that a decision has charged, if it has, until it is settled. */
export function keepSlot(decision: Decision, onEvent: EventListener | undefined): void {
  if (!hasSlots(decision.policy) || !hasCharge(decision)) return;
  const charge = chargeOf<Policy>(decision) as ChargeRecord;
  if (charge.settler?.renew === undefined) return;
  const { scope } = charge.settler;
  const { name, policy } = charge.limit;
  const holdMs = policy.holdMs as number;
  const byHold = getOrMake(renewers, scope, () => new Map<number, SlotRenewer>());
  const renewer = workEndsWithRequest ? new SlotRenewer(holdMs) : getOrMake(byHold, holdMs, () => new SlotRenewer(holdMs));
  const lost = (counted: boolean): void => activeListener(onEvent)?.({ type: "slot-lost", name, key: charge.key, decision, counted });
  const slot: Slot = { charge, lost, renewing: undefined };
  charge.slot = {
    end: () => {
      renewer.delete(slot);
      return slot.renewing;
    },
  };
  renewer.add(slot);
}

/**
 * Stops renewing the slots of decisions whose requests end where this process does not see it. They come back by themselves, or are given back
 * by receipt.
 */
export function leaveSlots(decisions: readonly Decision[]): void {
  for (const decision of decisions) if (hasCharge(decision)) void (chargeOf<Policy>(decision) as ChargeRecord).slot?.end();
}
