import { asCharge, chargeOf, hasCharge } from "../algorithms/decision.js";
import type { Policy } from "../algorithms/registry.js";
import type { ChargeRecord, Decision } from "../decide/decision.js";
import type { EventListener } from "../events/events.js";
import { activeListener } from "../events/listeners.js";
import { isPromise, type Promised, runInBackground } from "../support/promises.js";
import { startTimer, stopTimer, workEndsWithRequest } from "../support/runtime.js";

/** How many slots one turn renews. Decisions that wait for the store go between the turns. */
const perTurn = 256;
const maxTimerMs = 2 ** 30;

/** Whether a policy counts requests in flight, whose units are given back when they end. */
export function hasSlots({ algorithm }: Pick<Policy, "algorithm">): boolean {
  return algorithm === "concurrency";
}

/** A slot that is renewed until it is given back. */
export class Slot {
  readonly charge: ChargeRecord;
  readonly #decision: Decision;
  readonly #keeper: Keeper;
  readonly #onEvent: EventListener | undefined;
  /** A renewal in flight. It changes the charge. */
  renewing: Promise<void> | undefined;

  constructor(charge: ChargeRecord, decision: Decision, keeper: Keeper, onEvent: EventListener | undefined) {
    this.charge = charge;
    this.#decision = decision;
    this.#keeper = keeper;
    this.#onEvent = onEvent;
  }

  /** Stops the renewals. Returns the one in flight, which must end before the slot is given back. */
  end(): Promise<void> | undefined {
    this.#keeper.delete(this);
    return this.renewing;
  }

  renew(): PromiseLike<unknown> | undefined {
    const { charge } = this;
    const { limit, key, settler } = charge;
    // After a fault the slot may have been renewed, or not. The next turn finds out.
    return runInBackground(
      () => {
        const renewed = settler?.renew?.(limit, key, charge) as Promised<Decision | undefined>;
        if (!isPromise(renewed)) return this.#renewed(renewed);
        this.renewing = Promise.resolve(renewed).then((decision) => this.#renewed(decision));
        return this.renewing.finally(() => {
          this.renewing = undefined;
        });
      },
      () => undefined,
    );
  }

  #renewed(renewed: Decision | undefined): void {
    const { charge } = this;
    const { limit, key } = charge;
    const before = charge.atMs;
    const counted = renewed?.allowed === true;
    if (counted) Object.assign(charge, asCharge(renewed));
    else this.end();
    if (counted && charge.atMs - before < (limit.policy.holdMs as number)) return;
    activeListener(this.#onEvent)?.({ type: "slot-lost", name: limit.name, key, decision: this.#decision, counted });
  }
}

const held = new Set<Slot>();

/** The names of the limits whose slots requests in flight hold in this process, one for each slot. */
export function slotsHeld(): string[] {
  return [...held].map(({ charge }) => charge.limit.name);
}

/** Renews all slots of one store in this process that last equally long, in one go each third of that time. */
class Keeper {
  readonly #everyMs: number;
  readonly #slots = new Set<Slot>();
  #timer: unknown;

  constructor(holdMs: number) {
    this.#everyMs = Math.min(Math.max(1, Math.floor(holdMs / 3)), maxTimerMs);
  }

  add(slot: Slot): void {
    this.#slots.add(slot);
    held.add(slot);
    this.#timer ??= startTimer(this.#tick, this.#everyMs);
  }

  delete(slot: Slot): void {
    held.delete(slot);
    this.#slots.delete(slot);
    if (this.#slots.size > 0) return;
    stopTimer(this.#timer);
    this.#timer = undefined;
  }

  readonly #tick = async (): Promise<void> => {
    this.#timer = startTimer(this.#tick, this.#everyMs);
    const due = [...this.#slots].filter(({ renewing }) => !renewing);
    for (let i = 0; i < due.length; i += perTurn) {
      await Promise.all(due.slice(i, i + perTurn).map((slot) => (this.#slots.has(slot) ? slot.renew() : undefined)));
    }
  };
}

/**
 * Stops renewing the slots of decisions whose requests end where this process does not see it. They come back by themselves, or are given back
 * by receipt.
 */
export function leaveSlots(decisions: readonly Decision[]): void {
  for (const decision of decisions) if (hasCharge(decision)) void (chargeOf<Policy>(decision) as ChargeRecord).slot?.end();
}

const keepers = new WeakMap<object, Map<number, Keeper>>();

/** Renews the slot that a decision has charged, if it has, until it is settled. */
export function keepSlot(decision: Decision, onEvent: EventListener | undefined): void {
  if (!hasSlots(decision.policy) || !hasCharge(decision)) return;
  const charge = chargeOf<Policy>(decision) as ChargeRecord;
  if (charge.settler?.renew === undefined) return;
  const { scope } = charge.settler;
  const holdMs = charge.limit.policy.holdMs as number;
  const byHold = keepers.get(scope) ?? new Map<number, Keeper>();
  const keeper = (!workEndsWithRequest && byHold.get(holdMs)) || new Keeper(holdMs);
  keepers.set(scope, byHold.set(holdMs, keeper));
  const slot = new Slot(charge, decision, keeper, onEvent);
  charge.slot = slot;
  keeper.add(slot);
}
