import type { Policy } from "@floodgate/core";
import { Violation } from "./violation.js";

/** What a lease step answers. */
export interface Leased {
  readonly units: number;
  readonly state: number;
  readonly atMs: number;
  readonly remaining: number;
  readonly resetAfterMs: number;
  readonly processes: number;
}

/**
 * One key in Redis, and a ledger of what was admitted. Written apart from the algorithms, so that it shares no mistake with them: a fixed
 * window, or a bucket whose refill is one unit in `everyMs`.
 */
export class PolicyModel {
  readonly isWindow: boolean;
  readonly limit: number;
  readonly lifeMs: number;
  /** The window; for a bucket the time in which a unit flows in. */
  readonly everyMs: number;
  /** The number of the state. It changes when a state begins. */
  state = 0;
  /** In a window: its start, and the units taken. In a bucket: the time of the last change, and the missing parts, 1 for each ms. */
  sinceMs = 0;
  taken = 0;
  /** When each process asked for a lease. */
  members: Record<number, number> = {};
  /** The ledger: admitted in this window, under this state; of a bucket, how many parts more may be admitted before the bound is broken. */
  admitted = 0;
  admittedHere = 0;
  room: number;
  /** Units that a crash may strand. */
  lost = 0;
  /** The leases that Redis has recorded, by their ids; undefined for one that must not begin any more. */
  records: Map<string, Leased | undefined> = new Map();

  readonly #policy: Policy;

  constructor(policy: Policy, lifeMs: number) {
    this.#policy = policy;
    this.isWindow = policy.algorithm === "fixed-window";
    this.limit = policy.quota;
    this.everyMs = this.isWindow ? policy.spanMs : policy.spanMs / policy.quota;
    this.lifeMs = lifeMs;
    this.room = this.limit * this.everyMs + lifeMs;
  }

  clone(): PolicyModel {
    return Object.assign(new PolicyModel(this.#policy, this.lifeMs), this, {
      members: { ...this.members },
      records: new Map(this.records),
    });
  }

  id(): string {
    return [this.sinceMs, this.taken, this.admitted, this.admittedHere, this.room, this.lost].join();
  }

  /** Brings the state to the present. */
  #at(nowMs: number): void {
    if (this.isWindow) {
      if (nowMs - this.sinceMs < this.everyMs) return;
      this.sinceMs = Math.floor(nowMs / this.everyMs) * this.everyMs;
      this.taken = this.admitted = this.admittedHere = this.lost = 0;
      return;
    }
    this.taken = Math.max(0, this.taken - (nowMs - this.sinceMs));
    this.room = Math.min(this.limit * this.everyMs + this.lifeMs, this.room + nowMs - this.sinceMs);
    this.sinceMs = nowMs;
  }

  #remaining(): number {
    return this.isWindow ? this.limit - this.taken : Math.floor((this.limit * this.everyMs - this.taken) / this.everyMs);
  }

  #charge(units: number): void {
    if (this.taken === 0) {
      this.state++;
      this.admittedHere = 0;
    }
    this.taken += this.isWindow ? units : units * this.everyMs;
  }

  /** Returns whether the request was allowed. */
  consume(nowMs: number, wasReset: boolean): boolean {
    this.#at(nowMs);
    if (this.#remaining() < 1) return false;
    this.#charge(1);
    this.admit(nowMs, this.state, wasReset);
    return true;
  }

  lease(nowMs: number, from: number, id: string, want: number): Leased {
    this.#at(nowMs);
    this.members[from] = nowMs;
    const processes = Object.values(this.members).filter((ms) => ms >= nowMs - 2 * this.lifeMs).length;
    const units = Math.min(want, Math.floor(this.#remaining() / (2 * processes)));
    const granted = units >= 2 && !this.records.has(id) ? units : 0;
    if (granted > 0) this.#charge(granted);
    const resetAfterMs = this.isWindow ? this.sinceMs + this.everyMs - nowMs : this.taken;
    const leased = { units: granted, state: this.state, atMs: nowMs, remaining: this.#remaining(), resetAfterMs, processes };
    if (granted > 0) this.records.set(id, leased);
    return leased;
  }

  end(nowMs: number, id: string, spent: number, keepsRecord: boolean): void {
    this.#at(nowMs);
    const record = this.records.get(id);
    if (record === undefined) {
      this.records.set(id, undefined);
      return;
    }
    if (!keepsRecord) this.records.delete(id);
    const { state, atMs, units } = record;
    if (state !== this.state || this.taken === 0) return;
    if (this.isWindow) {
      if (atMs >= this.sinceMs) this.taken -= units - spent;
    } else {
      const flowed = nowMs - atMs;
      const counts = (count: number): number => Math.max(count * this.everyMs - flowed, 0);
      this.taken = Math.max(0, this.taken - (counts(units) - counts(spent)));
    }
  }

  reset(): void {
    this.taken = 0;
    this.admittedHere = 0;
    this.state++;
  }

  /** A unit that was charged under a state lets a request pass. */
  admit(nowMs: number, state: number, wasReset: boolean): void {
    this.#at(nowMs);
    this.admitted++;
    if (state === this.state) this.admittedHere++;
    if (wasReset) return;
    if (this.isWindow) {
      if (this.admitted > this.limit) throw new Violation("A window has admitted more than its limit.");
    } else {
      this.room -= this.everyMs;
      if (this.room < 0) throw new Violation("A bucket has admitted more than it does in a stretch that is longer by a life.");
    }
  }

  /** @param held the units that processes may still spend. */
  check(nowMs: number, held: number): void {
    this.#at(nowMs);
    if (this.taken < 0) throw new Violation("More units were given back than were charged.");
    if (!this.isWindow) return;
    if (this.admittedHere > this.taken) throw new Violation("Requests were admitted that were not charged.");
    if (held > this.limit) throw new Violation("More units are held than the limit has.");
  }

  /** Nothing is in flight or held any more. */
  checkEnd(nowMs: number): void {
    this.#at(nowMs);
    if (this.isWindow && this.taken - this.admittedHere > this.lost) throw new Violation("Units are stranded.");
  }
}
