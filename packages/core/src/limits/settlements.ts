import type { Decision } from "../decide/decision.js";
import type { Limit } from "../decide/limit.js";
import type { Mode, Store } from "../decide/store.js";
import type { EventListener } from "../events/events.js";
import { FloodgateError, shown } from "../support/errors.js";
import { andThen } from "../support/promises.js";
import type { Receipts } from "./receipt.js";
import { checkCharge, checkRealCost, giveBack, refunded, settle, settled } from "./settle.js";

type Units = number | PromiseLike<number>;

/** Refunds and settles for a limiter, by decisions or receipts. */
export class Settlements {
  readonly #guard: Store<Mode>;
  readonly #limit: Limit | string;
  readonly #limits: () => readonly Limit[] | PromiseLike<readonly Limit[]>;
  readonly #receipts: Receipts | undefined;
  readonly #onEvent: EventListener | undefined;

  /**
   * @param limit the limit, or a rule's name: then each charge is settled under its own limit.
   * @param limits the limits that a receipt may have been issued for.
   */
  constructor(
    guard: Store<Mode>,
    limit: Limit | string,
    limits: () => readonly Limit[] | PromiseLike<readonly Limit[]>,
    receipts: Receipts | undefined,
    onEvent: EventListener | undefined,
  ) {
    this.#guard = guard;
    this.#limit = limit;
    this.#limits = limits;
    this.#receipts = receipts;
    this.#onEvent = onEvent;
  }

  refund(key: string, charged: Decision | string): Units {
    if (typeof charged !== "string") return giveBack(this.#guard, this.#limit, key, charged, this.#onEvent);
    return refunded(this.#redeem(key, charged, 0), this.#name, key, undefined, this.#onEvent);
  }

  settle(key: string, charged: Decision | string, cost: number): Units {
    if (typeof charged !== "string") return settle(this.#guard, this.#limit, key, charged, cost, this.#onEvent);
    return settled(this.#redeem(key, charged, checkRealCost(cost)), this.#name, key, undefined, cost, this.#onEvent);
  }

  receipt(decision: Decision): string {
    const receipts = this.#receipts ?? this.#noSecret("FLOODGATE_INVALID_OPTION", "has no `receiptSecret` to sign receipts with");
    return receipts.issue(this.#guard, this.#name, checkCharge(this.#guard, this.#limit, decision));
  }

  #redeem(key: string, receipt: string, cost: number): Units {
    const problem = "was given a receipt, but has no `receiptSecret` to check it with";
    const receipts = this.#receipts ?? this.#noSecret("FLOODGATE_INVALID_RECEIPT", problem);
    return andThen<readonly Limit[], number>(this.#limits(), (limits) => receipts.redeem(this.#guard, limits, key, receipt, cost));
  }

  get #name(): string {
    return typeof this.#limit === "string" ? this.#limit : this.#limit.name;
  }

  #noSecret(code: "FLOODGATE_INVALID_OPTION" | "FLOODGATE_INVALID_RECEIPT", problem: string): never {
    throw new FloodgateError(
      code,
      `${shown(this.#name)} ${problem}. Write receiptSecret: process.env.RECEIPT_SECRET, at least 32 characters and the same in each process.`,
    );
  }
}
