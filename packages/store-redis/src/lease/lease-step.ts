import type { Decision } from "@floodgate/core";
import type { Batch } from "../batch.js";
import type { Reply } from "../reply.js";
import { type KeyedCheck, Step } from "../steps.js";
import { leastUnits } from "./key-lease.js";

/** What Redis answered to a lease step. */
export interface Debit {
  /** The decision of the debit; its cost is the units. Undefined if Redis debited nothing. */
  readonly decision: Decision | undefined;
  /** The processes that leased this key lately, with this one. */
  readonly processes: number;
  readonly resetAfterMs: number;
  /** When it was sent, by the monotonic clock and by the wall clock; and the time of an injected clock that it carried. */
  readonly sentMs: number;
  readonly sentWallMs: number;
  readonly nowMs: number;
}

/** Asks Redis to debit up to `want` units. The caller may have given up when the answer comes, but must still hear of the units. */
export class LeaseStep extends Step<void> {
  readonly #check: KeyedCheck;
  readonly #want: number;
  readonly #member: string;
  readonly #keptMs: number;
  readonly #onDebit: (debit: Debit) => void;
  #sentWallMs = 0;
  #units = 0;
  #processes = 1;
  #resetAfterMs = 0;
  #decision: Decision | undefined;

  /**
   * @param member identifies this process among those that lease the key.
   * @param keptMs how long it counts as one of them.
   */
  constructor(check: KeyedCheck, want: number, member: string, keptMs: number, timeoutMs: number, onDebit: (debit: Debit) => void) {
    super(check.redisKey, timeoutMs);
    this.#check = check;
    this.#want = want;
    this.#member = member;
    this.#keptMs = keptMs;
    this.#onDebit = onDebit;
  }

  write(batch: Batch): void {
    this.#sentWallMs = Date.now();
    batch.key(this.#check.redisKey, this.#check.blockKey);
    batch.args.push("l", batch.policy(this.#check.known.policy), String(this.#want), this.#member, String(this.#keptMs));
  }

  protected readAnswer(reply: Reply): void {
    this.#units = reply.turn("the units of a lease", 0, this.#want);
    if (this.#units === 0) {
      this.#resetAfterMs = reply.number("the wait until the reset", 0, Number.MAX_SAFE_INTEGER);
      return;
    }
    if (this.#units < leastUnits) reply.wrong("the units of a lease", this.#units);
    this.#processes = reply.number("the processes that lease", 1, Number.MAX_SAFE_INTEGER);
    const { decision } = reply.decision(this.#check.known, this.#units, false, this.firstKey);
    if (!decision.allowed) reply.wrong("the units of a lease", this.#units);
    this.#decision = decision;
    this.#resetAfterMs = decision.resetAfterMs;
  }

  override settle(reply: Reply): void {
    // After the deadline too: units that were debited must be given back.
    if (this.settled) this.accept(reply);
    else super.settle(reply);
  }

  protected accept({ sentMs, nowMs }: Reply): void {
    this.#onDebit({
      decision: this.#decision,
      processes: this.#processes,
      resetAfterMs: this.#resetAfterMs,
      sentMs,
      sentWallMs: this.#sentWallMs,
      nowMs,
    });
  }
}
