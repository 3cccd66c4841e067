import { activeListener, asCharge, type Clock, type Decision, decision, inState, startTimer, stopTimer } from "@floodgate/core/store";
import type { CommandQueues } from "../command-queues.js";
import { hashTag } from "../keys.js";
import type { KeyedCheck, KnownLimit } from "../limits.js";
import { type Grant, grantOf, type Moment, restMsAfter } from "./grant.js";
import type { Fetch, KeyLease } from "./key-lease.js";
import { type Debit, EndLease, keptMs, LeaseStep } from "./lease-step.js";
import type { LeaseTable as TableOf } from "./lease-table.js";

type LeaseTable = TableOf<KnownLimit>;

/** How long to wait for Redis when nobody waits for its answer, and then how long until it is asked again. */
const patienceMs = 1000;

/**
 * The leases of a store: spends units that Redis has charged ahead, fetches more in the background, and gives back what is unused. Whatever
 * happens to a fetch, units are spent only if Redis has charged them before. Whatever happens to an answer, each lease is ended in Redis.
 */
export class Leases {
  readonly #clock: Clock | undefined;
  readonly #queues: CommandQueues;
  readonly #prefix: string;
  /** Identifies this store among those that lease a key. */
  readonly #member = Math.random().toString(36).slice(2, 12);
  /** How many leases it has asked for. */
  #asked = 0;
  /** Tables with keys that hold something. */
  readonly #holding = new Set<LeaseTable>();
  /** What is on its way to Redis. */
  readonly #pending = new Set<Promise<unknown>>();
  /** Ask again to end leases, because Redis did not answer. */
  readonly #unanswered = new Set<() => void>();
  #retry: unknown;
  #timer: unknown;
  #firesMs = Number.POSITIVE_INFINITY;

  /** @param prefix of the store, with its colon. */
  constructor(clock: Clock | undefined, queues: CommandQueues, prefix: string) {
    this.#clock = clock;
    this.#queues = queues;
    this.#prefix = prefix;
  }

  /** Spends leased units; undefined if there are not enough. */
  spend(table: LeaseTable, key: string, cost: number, timeoutMs: number): Decision | undefined {
    const now = this.#now();
    const lease = table.of(key, now.ms);
    lease.count(cost, now.ms, table.lifeMs);
    const grant = lease.find(cost, now);
    if (grant === undefined) return undefined;
    lease.spend(grant, cost);
    this.#renew(table, key, lease, now.ms, timeoutMs);
    return decisionOf(grant, table, cost, lease.remaining, now);
  }

  /** Spends leased units under all limits, or under none; undefined if there are not enough of each. */
  spendAll(checks: readonly KeyedCheck[], timeoutMs: number): Decision[] | undefined {
    const now = this.#now();
    const found: [KeyLease, Grant][] = [];
    for (const { known, key, cost, dryRun } of checks) {
      const table = known.lease;
      if (table === undefined || dryRun) continue;
      const lease = table.of(key, now.ms);
      lease.count(cost, now.ms, table.lifeMs);
      const grant = lease.find(cost, now);
      if (grant !== undefined) found.push([lease, grant]);
    }
    if (found.length < checks.length) return undefined;
    return checks.map(({ known, key, cost }, i) => {
      const [lease, grant] = found[i] as [KeyLease, Grant];
      const table = known.lease as LeaseTable;
      lease.spend(grant, cost);
      this.#renew(table, key, lease, now.ms, timeoutMs);
      return decisionOf(grant, table, cost, lease.remaining, now);
    });
  }

  /** The decision that a request of cost 1 would get; undefined if it would not be decided here. */
  look(table: LeaseTable, key: string): Decision | undefined {
    const now = this.#now();
    const lease = table.held.get(key);
    const grant = lease?.find(1, now);
    return lease && grant && decisionOf(grant, table, 1, lease.remaining, now);
  }

  /** Fetches units in the background if the key is hot. */
  fetch(table: LeaseTable, key: string, timeoutMs: number): void {
    const { ms } = this.#now();
    this.#renew(table, key, table.of(key, ms), ms, timeoutMs);
  }

  /** Fetches units of all limits of a request in the background, if all keys are hot. Otherwise no such request could spend them. */
  fetchAll(checks: readonly KeyedCheck[], timeoutMs: number): void {
    const { ms } = this.#now();
    const hot = checks.every(({ known, key, dryRun }) => known.lease !== undefined && !dryRun && known.lease.of(key, ms).isHot);
    if (hot) for (const { known, key } of checks) this.fetch(known.lease as LeaseTable, key, timeoutMs);
  }

  #renew(table: LeaseTable, key: string, lease: KeyLease, nowMs: number, timeoutMs: number): void {
    const want = lease.want(nowMs, table.lifeMs);
    if (want === 0) return;
    const fetch = lease.begin(want, `${this.#member}-${this.#asked++}`);
    this.#hold(table, key, lease);
    const step = new LeaseStep(table.known, this.#redisKey(table, key), fetch.id, want, this.#member, 2 * table.lifeMs, timeoutMs);
    // Redis may have debited units although its answer is lost. They are never spent.
    const lost = (): void => {
      lease.refused(this.#now().ms, table.lifeMs);
      this.#end(table, key, lease, fetch.id, 0);
    };
    this.#track(this.#queues.ask(step).then((debit) => this.#debited(table, key, lease, fetch, debit), lost));
  }

  #debited(table: LeaseTable, key: string, lease: KeyLease, fetch: Fetch, debit: Debit): void {
    const { lifeMs, known } = table;
    const { policy } = known.limit;
    const { decision, resetAfterMs, processes } = debit;
    const now = this.#now();
    const isInjected = this.#clock !== undefined;
    const sentMs = isInjected ? debit.nowMs : debit.sentMs;
    const restMs = restMsAfter(policy, lifeMs, sentMs, resetAfterMs, now.ms);
    if (decision === undefined) {
      lease.refused(now.ms, restMs);
    } else {
      const { cost: units, remaining } = decision;
      const sentWallMs = isInjected ? Number.POSITIVE_INFINITY : debit.sentWallMs;
      const charge = asCharge(decision);
      const { id } = fetch;
      const grant = grantOf(policy, lifeMs, { id, units, charge, remaining, resetAfterMs, processes, sentMs, sentWallMs });
      known.denied?.doubt(known.suffix, key);
      tell(table, key, grant, undefined);
      this.#release(table, key, lease, lease.granted(fetch, grant, now, restMs));
      this.#wakeAt(grant.untilMs, now.ms);
    }
    this.#drop(table, key, lease);
  }

  /** Ends the leases of a key under all limits of a name. */
  forgetName(name: string, key: string): void {
    for (const table of this.#holding) {
      const lease = table.known.limit.name === name ? table.held.get(key) : undefined;
      if (lease !== undefined) this.#release(table, key, lease, lease.end());
    }
  }

  /** Gives back the units of a key that Redis has rejected. Returns whether there are any: then the request may pass now. */
  release(suffix: string, key: string): boolean {
    let isReleased = false;
    for (const table of this.#holding) {
      const lease = table.known.suffix === suffix ? table.held.get(key) : undefined;
      if (lease === undefined) continue;
      lease.rest(this.#now().ms, table.lifeMs);
      this.#release(table, key, lease, lease.end());
      isReleased ||= lease.ending > 0;
    }
    return isReleased;
  }

  /** Ends all leases, and gives back what is unused. Resolves when Redis has answered, or does not answer in time. */
  async releaseLeases(): Promise<void> {
    this.#endAgain();
    for (const table of this.#holding) {
      for (const [key, lease] of table.held) this.#release(table, key, lease, lease.end());
    }
    // Fetches that are in flight are given back when their answers come.
    await Promise.allSettled(this.#pending);
    await Promise.allSettled(this.#pending);
  }

  #release(table: LeaseTable, key: string, lease: KeyLease, grants: readonly Grant[]): void {
    for (const grant of grants) {
      tell(table, key, grant, grant.spent);
      this.#end(table, key, lease, grant.id, grant.spent);
    }
    this.#drop(table, key, lease);
  }

  /**
   * Ends a lease in Redis, which gives back what is unused. Redis keeps a record of the lease until it has ended it. So this may be sent as
   * often as it takes, by a library too.
   */
  #end(table: LeaseTable, key: string, lease: KeyLease, id: string, spent: number): void {
    const { known } = table;
    const forgottenMs = performance.now() + keptMs;
    lease.ending++;
    this.#hold(table, key, lease);
    const done = new Promise<void>((resolve) => {
      const ended = (): void => {
        lease.ending--;
        this.#drop(table, key, lease);
        resolve();
      };
      const unanswered = (): void => {
        if (performance.now() >= forgottenMs) {
          ended();
        } else {
          this.#unanswered.add(ask);
          this.#retry ??= startTimer(() => this.#endAgain(), patienceMs);
        }
      };
      const ask = (): void => {
        const step = new EndLease(known, this.#redisKey(table, key), id, spent, patienceMs);
        this.#track(this.#queues.ask(step).then(ended, unanswered));
      };
      ask();
    });
    known.denied?.forget(known.suffix, key, done);
  }

  #endAgain(): void {
    stopTimer(this.#retry);
    this.#retry = undefined;
    const again = [...this.#unanswered];
    this.#unanswered.clear();
    for (const ask of again) ask();
  }

  #track(done: Promise<unknown>): void {
    this.#pending.add(done);
    const end = (): boolean => this.#pending.delete(done);
    done.then(end, end);
  }

  #hold(table: LeaseTable, key: string, lease: KeyLease): void {
    table.held.set(key, lease);
    this.#holding.add(table);
  }

  #drop(table: LeaseTable, key: string, lease: KeyLease): void {
    if (!lease.isIdle) return;
    table.held.delete(key);
    if (table.held.size === 0) this.#holding.delete(table);
  }

  /** Wakes up when a grant ends, to give back its unused units. No bound rests on this. */
  #wakeAt(untilMs: number, nowMs: number): void {
    if (untilMs >= this.#firesMs) return;
    stopTimer(this.#timer);
    this.#firesMs = untilMs;
    // An injected clock has its own pace.
    const inMs = this.#clock === undefined ? untilMs - nowMs : pollMs;
    this.#timer = startTimer(() => this.#sweep(), Math.max(1, Math.ceil(inMs)));
  }

  #sweep(): void {
    this.#firesMs = Number.POSITIVE_INFINITY;
    const now = this.#now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const table of this.#holding) {
      for (const [key, lease] of table.held) {
        this.#release(table, key, lease, lease.endOver(now));
        for (const { untilMs } of lease.grants) nextMs = Math.min(nextMs, untilMs);
      }
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#wakeAt(nextMs, now.ms);
  }

  #redisKey({ known }: LeaseTable, key: string): string {
    return this.#prefix + hashTag(key) + known.suffix;
  }

  #now(): Moment {
    return this.#clock === undefined ? { ms: performance.now(), wallMs: Date.now() } : { ms: timeOf(this.#clock), wallMs: 0 };
  }
}

function tell({ known }: LeaseTable, key: string, { units }: Grant, spent: number | undefined): void {
  activeListener()?.({ type: "lease", name: known.limit.name, key, units, spent });
}

/** How often an injected clock is read. */
const pollMs = 10;

/** The time of an injected clock. If it throws, no grant is in force. */
function timeOf(clock: Clock): number {
  try {
    return clock();
  } catch {
    return Number.NEGATIVE_INFINITY;
  }
}

/** Numbers as last seen, less what was spent here. The state's number is that of the debit, so that settlements find its charge. */
function decisionOf(grant: Grant, { known }: LeaseTable, cost: number, remaining: number, now: Moment): Decision {
  const { limit } = known;
  const { charge, resetAfterMs, sentMs } = grant;
  const resetMs = Math.max(1, resetAfterMs - Math.floor(now.ms - sentMs));
  const { quota } = limit.policy;
  // Units of an earlier window may be left, while Redis has begun the next one.
  const left = Math.max(0, Math.min(remaining, quota - cost));
  const made = decision(limit, cost, {
    allowed: true,
    remaining: left,
    retryAfterMs: 0,
    resetAfterMs: resetMs,
    delayMs: 0,
    atMs: charge.atMs,
  });
  return inState(made, charge.state as number);
}
