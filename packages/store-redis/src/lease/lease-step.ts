import type { Decision } from "@floodgate/core";
import type { GeneralBatch } from "../batch.js";
import { recordOf } from "../keys.js";
import type { KnownLimit } from "../limits.js";
import type { Reply } from "../reply.js";
import { Step } from "../step.js";
import { Free } from "../steps.js";
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

/** How long Redis keeps the record of a lease, so that its unused units can be given back. */
export const keptMs = 600_000;

/** Asks Redis to debit up to `want` units. */
export class LeaseStep extends Step<Debit> {
  readonly #known: KnownLimit;
  readonly #id: string;
  readonly #want: number;
  readonly #member: string;
  readonly #countedMs: number;
  #sentWallMs = 0;

  /**
   * @param id of the lease.
   * @param member identifies this process among those that lease the key.
   * @param countedMs how long it counts as one of them.
   */
  constructor(known: KnownLimit, redisKey: string, id: string, want: number, member: string, countedMs: number, timeoutMs: number) {
    super(redisKey, timeoutMs, 2);
    this.#known = known;
    this.#id = id;
    this.#want = want;
    this.#member = member;
    this.#countedMs = countedMs;
  }

  write(batch: GeneralBatch): void {
    this.#sentWallMs = Date.now();
    batch.keys.push(this.redisKey);
    batch.others.push(recordOf(this.redisKey, this.#id), `${this.redisKey}:leases`);
    const times = [this.#want, this.#member, this.#countedMs, keptMs].map(String);
    batch.args.push("l", batch.policy(this.#known.policy), this.#id, ...times);
  }

  protected readAnswer(reply: Reply): Debit {
    const { sentMs, nowMs } = reply;
    const moment = { sentMs, sentWallMs: this.#sentWallMs, nowMs };
    const units = reply.discriminant("the units of a lease", 0, this.#want);
    if (units === 0) {
      const resetAfterMs = reply.number("the wait until the reset", 0, Number.MAX_SAFE_INTEGER);
      return { decision: undefined, processes: 1, resetAfterMs, ...moment };
    }
    if (units < leastUnits) reply.outOfRange("the units of a lease", units);
    const processes = reply.number("the processes that lease", 1, Number.MAX_SAFE_INTEGER);
    const { decision } = reply.decision(this.#known, units, false, this.firstKey);
    if (!decision.allowed) reply.outOfRange("the units of a lease", units);
    return { decision, processes, resetAfterMs: decision.resetAfterMs, ...moment };
  }
}

/** Ends a lease: Redis gives back what is unused, and forgets the lease. To repeat it does nothing. */
export class EndLease extends Free {
  readonly #known: KnownLimit;
  readonly #id: string;
  readonly #spent: number;

  constructor(known: KnownLimit, redisKey: string, id: string, spent: number, timeoutMs: number) {
    super(redisKey, timeoutMs, 2);
    this.#known = known;
    this.#id = id;
    this.#spent = spent;
  }

  write(batch: GeneralBatch): void {
    batch.keys.push(this.redisKey);
    batch.others.push(recordOf(this.redisKey, this.#id));
    batch.args.push("e", batch.policy(this.#known.policy), this.#id, String(this.#spent), String(keptMs));
  }
}
