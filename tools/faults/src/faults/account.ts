import type { Decision } from "@floodgate/core";

/** What one client was told, held against what it should have been told. */
export class Account {
  readonly #limit: number;
  /** What a fallback lets pass; 0 where there is none. */
  readonly #share: number;
  /** Units that Redis has charged, as it said itself. */
  #charged = 0;
  /** Units that the fallback has let pass, and that Redis has not been told of. */
  #owed = 0;
  /** Whether Redis may have charged more than it could say: then it may reject earlier, and must not let more pass. */
  #doubtful = false;

  constructor(limit: number, share: number) {
    this.#limit = limit;
    this.#share = share;
  }

  /** Takes down a decision. Answers what is wrong with it. */
  add(decision: Decision): string | undefined {
    return decision.degraded ? this.#addDegraded(decision) : this.#addCertain(decision);
  }

  doubt(): void {
    this.#doubtful = true;
  }

  /** What is wrong with what Redis says this client has left in the end. */
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
    // It may have handed over what it had let pass before Redis failed again.
    if (allowed !== this.#owed < this.#share && !this.#doubtful)
      return `the fallback ${said(allowed)} after ${this.#owed} of ${this.#share}`;
    if (allowed) this.#owed++;
    return undefined;
  }

  #addCertain({ allowed, remaining }: Decision): string | undefined {
    // Before it answered, Redis was told what the fallback has let pass.
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
