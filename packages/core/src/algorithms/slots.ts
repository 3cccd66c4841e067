import { isPromise, type Promised, runInBackground } from "../support/promises.js";
import { startTimer, stopTimer, workEndsWithRequest } from "../support/runtime.js";
import type { ChargedSlot, DecisionUnder, PolicyBase } from "./algorithm.js";
import { asCharge } from "./decision.js";

/** How many slots one turn renews. Decisions that wait for the store go between the turns. */
const perTurn = 256;
const maxTimerMs = 2 ** 30;

/** A slot that is renewed until it is given back. */
class Slot {
  readonly charge: ChargedSlot<PolicyBase>;
  readonly #keeper: Keeper;
  readonly #lost: (counted: boolean) => void;
  /** A renewal in flight. It changes the charge. */
  renewing: Promise<void> | undefined;

  constructor(charge: ChargedSlot<PolicyBase>, keeper: Keeper, lost: (counted: boolean) => void) {
    this.charge = charge;
    this.#keeper = keeper;
    this.#lost = lost;
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
        const renewed = settler?.renew?.(limit, key, charge) as Promised<DecisionUnder<PolicyBase> | undefined>;
        if (!isPromise(renewed)) return this.#renewed(renewed);
        this.renewing = Promise.resolve(renewed).then((decision) => this.#renewed(decision));
        return this.renewing.finally(() => {
          this.renewing = undefined;
        });
      },
      () => undefined,
    );
  }

  #renewed(renewed: DecisionUnder<PolicyBase> | undefined): void {
    const { charge } = this;
    const before = charge.atMs;
    const counted = renewed?.allowed === true;
    if (counted) Object.assign(charge, asCharge(renewed));
    else this.end();
    if (!counted || charge.atMs - before >= (charge.limit.policy.holdMs as number)) this.#lost(counted);
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

const keepers = new WeakMap<object, Map<number, Keeper>>();

/**
 * Renews a slot until it is settled.
 * @param lost is told that the slot came back too early, and whether the request has one again.
 */
export function keepSlot<P extends PolicyBase>(charge: ChargedSlot<P>, lost: (counted: boolean) => void): void {
  if (charge.settler?.renew === undefined) return;
  const { scope } = charge.settler;
  const holdMs = charge.limit.policy.holdMs as number;
  const byHold = keepers.get(scope) ?? new Map<number, Keeper>();
  const keeper = (!workEndsWithRequest && byHold.get(holdMs)) || new Keeper(holdMs);
  keepers.set(scope, byHold.set(holdMs, keeper));
  const slot = new Slot(charge as unknown as ChargedSlot<PolicyBase>, keeper, lost);
  charge.slot = slot;
  keeper.add(slot);
}
