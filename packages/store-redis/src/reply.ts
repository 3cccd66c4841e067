import { type Cells, type Decision, decision, type Limit } from "@floodgate/core";

/** A decision or a fault of one check, with the state that a rejected request met. */
export interface Told {
  readonly decision: Decision;
  readonly state: Cells | undefined;
}

/** Reads the answers of a batch one after the other. The layout is told in lua/batch.lua. */
export class Reply {
  /** The time by which the batch was decided. */
  readonly nowMs: number;
  /** By this process's steady clock. */
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly #list: readonly unknown[];
  #at = 1;

  constructor(list: readonly unknown[], nowMs: number, sentMs: number, receivedMs: number) {
    this.#list = list;
    this.nowMs = nowMs;
    this.sentMs = sentMs;
    this.receivedMs = receivedMs;
  }

  /** The text of a fault, where the next step has failed. */
  fault(): string | undefined {
    const next = this.#list[this.#at];
    // A client may be set to hand over numbers as texts.
    if (typeof next === "number" || !Number.isNaN(Number(next))) return undefined;
    this.#at++;
    return String(next);
  }

  number(): number {
    const next = this.#list[this.#at++];
    return typeof next === "number" ? next : Number(next);
  }

  /** @param stateAlways whether a state follows an allowed request too: of a whole that was rejected it does. */
  told(limit: Limit, cost: number, stateAlways: boolean): Told {
    const { quota } = limit.policy;
    const first = this.number();
    if (first >= 0) return { decision: decision(limit, quota, true, first, 0, this.number(), 0, cost, this.nowMs), state: undefined };
    const allowed = first === -1;
    const remaining = this.number();
    const retryMs = this.number();
    const retryAfterMs = retryMs < 0 ? Number.POSITIVE_INFINITY : retryMs;
    const resetMs = this.number();
    const delayMs = this.number();
    const atMs = this.nowMs + this.number();
    const made = decision(limit, quota, allowed, remaining, retryAfterMs, resetMs, delayMs, cost, atMs);
    return { decision: made, state: !allowed || stateAlways ? this.#state() : undefined };
  }

  #state(): Cells | undefined {
    const count = this.number();
    if (count === 0) return undefined;
    const cells = new Float64Array(count);
    for (let i = 0; i < count; i++) cells[i] = this.number();
    return cells;
  }
}
