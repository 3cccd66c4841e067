import type { Decision } from "@floodgate/core";

/** Compares the decisions for one client with the expected ones. */
export class Account {
  readonly #limit: number;
  /** The units that a fallback allows; 0 without a fallback. */
  readonly #share: number;
  /** Units charged by Redis, according to its replies. */
  #charged = 0;
  /** Units that the fallback allowed and has not handed over to Redis. */
  #owed = 0;
  /** Whether Redis may have charged more than it could report. Then it may reject earlier, but must not allow more. */
  #doubtful = false;

  constructor(limit: number, share: number) {
    this.#limit = limit;
    this.#share = share;
  }

  /** Records a decision. Returns what is wrong with it. */
  add(decision: Decision): string | undefined {
    return decision.degraded ? this.#addDegraded(decision) : this.#addCertain(decision);
  }

  doubt(): void {
    this.#doubtful = true;
  }

  /** What is wrong with the client's remaining units in Redis at the end. */
  audit(remaining: number): string | undefined {
    const charged = this.#limit - remaining;
    const expected = this.#used;
    if (charged < expected) return `${charged} charged where ${expected} were let pass`;
    if (charged > expected && !this.#doubtful) return `${charged} charged where ${expected} were let pass: some of it too late`;
    return undefined;
  }

  get #used(): number {
    return Math.min(this.#charged, this.#limit);
  }

  #addDegraded({ allowed }: Decision): string | undefined {
    if (this.#share === 0) return undefined;
    // The fallback may have handed over its usage before Redis failed again.
    if (allowed !== this.#owed < this.#share && !this.#doubtful)
      return `the fallback ${said(allowed)} after ${this.#owed} of ${this.#share}`;
    if (allowed) this.#owed++;
    return undefined;
  }

  #addCertain({ allowed, remaining }: Decision): string | undefined {
    // The fallback's usage was handed over before this answer.
    this.#charged += this.#owed;
    this.#owed = 0;
    const used = this.#used;
    const fits = used < this.#limit;
    if (allowed ? !fits : fits && !this.#doubtful) return `Redis ${said(allowed)} after ${used} of ${this.#limit}`;
    if (allowed) this.#charged++;
    const left = this.#limit - this.#used;
    if (remaining > left || (remaining < left && !this.#doubtful)) return `${remaining} remain where ${left} should`;
    return undefined;
  }
}

function said(allowed: boolean): string {
  return allowed ? "let pass" : "rejected";
}
