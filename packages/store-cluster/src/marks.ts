import type { Charge, Clock } from "@floodgate/core/store";

export const redeemed: unique symbol = Symbol("redeemed");

interface Mark {
  readonly untilMs: number;
  readonly charge: Charge | typeof redeemed;
}

/** Notes of receipts: whether each was redeemed, or when its slots were renewed. Notes of receipts that have ended go while others come. */
export class Marks {
  readonly #clock: Clock;
  readonly #marks = new Map<string, Mark>();
  /** The notes that are to be looked at next. */
  #round: Iterator<[string, Mark]> = this.#marks.entries();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#marks.size;
  }

  /** The charge as it is after renewals. */
  of(charge: Charge): Charge | typeof redeemed {
    const { receipt } = charge;
    if (receipt === undefined) return charge;
    const nowMs = this.#clock();
    const mark = this.#marks.get(receipt.id);
    if (mark !== undefined && mark.untilMs > nowMs) return mark.charge;
    return nowMs < receipt.untilMs ? charge : redeemed;
  }

  set({ receipt }: Charge, charge: Charge | typeof redeemed, forMs = 0): void {
    if (receipt === undefined) return;
    const nowMs = this.#clock();
    this.#marks.set(receipt.id, { untilMs: Math.max(receipt.untilMs, nowMs + forMs), charge });
    // Two for each that comes: all are looked at, whichever ends first, and no call takes long.
    this.#deleteEnded(nowMs);
    this.#deleteEnded(nowMs);
  }

  #deleteEnded(nowMs: number): void {
    const next = this.#round.next();
    if (next.done) this.#round = this.#marks.entries();
    else if (next.value[1].untilMs <= nowMs) this.#marks.delete(next.value[0]);
  }
}
