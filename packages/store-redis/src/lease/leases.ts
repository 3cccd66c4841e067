import { asCharge, type Clock, type Decision, decision, inState } from "@floodgate/core/store";
import type { Lanes } from "../lanes.js";
import type { KnownLimit } from "../limits.js";
import { type KeyedCheck, Settle } from "../steps.js";
import { type Grant, grantOf, type Moment, restMsAfter } from "./grant.js";
import type { Fetch, KeyLease } from "./key-lease.js";
import { type Debit, LeaseStep } from "./lease-step.js";
import type { LeaseTable as TableOf } from "./lease-table.js";

type LeaseTable = TableOf<KnownLimit>;

export interface LeasesOptions {
  readonly clock: Clock | undefined;
  readonly lanes: Lanes;
  /** Makes the check of a key. */
  readonly keyed: (known: KnownLimit, key: string, cost: number) => KeyedCheck;
}

/** How long to wait for Redis when nobody waits for its answer. */
const patienceMs = 1000;

/**
 * The leases of a store: spends units that Redis has charged ahead, fetches more in the background, and gives back what is unused. Whatever
 * happens to a fetch, units are spent only if Redis has charged them before.
 */
export class Leases {
  readonly #clock: Clock | undefined;
  readonly #lanes: Lanes;
  readonly #keyed: LeasesOptions["keyed"];
  /** Identifies this store among those that lease a key. */
  readonly #member = Math.random().toString(36).slice(2, 12);
  /** How often it has given back. */
  #givenBack = 0;
  /** Tables with keys that hold something. */
  readonly #holding = new Set<LeaseTable>();
  /** What is on its way to Redis. */
  readonly #pending = new Set<Promise<unknown>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #firesMs = Number.POSITIVE_INFINITY;

  constructor({ clock, lanes, keyed }: LeasesOptions) {
    this.#clock = clock;
    this.#lanes = lanes;
    this.#keyed = keyed;
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
    for (const { known, key, cost, look } of checks) {
      const table = known.lease;
      if (table === undefined || look) continue;
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
    const hot = checks.every(({ known, key, look }) => known.lease !== undefined && !look && known.lease.of(key, ms).isHot);
    if (hot) for (const { known, key } of checks) this.fetch(known.lease as LeaseTable, key, timeoutMs);
  }

  #renew(table: LeaseTable, key: string, lease: KeyLease, nowMs: number, timeoutMs: number): void {
    const want = lease.want(nowMs, table.lifeMs);
    if (want === 0) return;
    const fetch = lease.begin(want);
    table.held.set(key, lease);
    this.#holding.add(table);
    const onDebit = (debit: Debit): void => this.#debited(table, key, lease, fetch, debit);
    const step = new LeaseStep(this.#keyed(table.known, key, 1), want, this.#member, 2 * table.lifeMs, timeoutMs, onDebit);
    // Units of a lost answer may stay charged. They are never spent.
    const lost = (): void => {
      lease.refused(fetch, this.#now().ms, table.lifeMs);
      this.#drop(table, key, lease);
    };
    this.#track(this.#lanes.ask(step).catch(lost));
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
      lease.refused(fetch, now.ms, restMs);
    } else {
      const { cost: units, remaining } = decision;
      const sentWallMs = isInjected ? Number.POSITIVE_INFINITY : debit.sentWallMs;
      const charge = asCharge(decision);
      const grant = grantOf(policy, lifeMs, { units, charge, remaining, resetAfterMs, processes, sentMs, sentWallMs });
      known.denied?.doubt(key);
      this.#giveBack(table, key, lease.granted(fetch, grant, now, restMs));
      this.#wakeAt(grant.untilMs, now.ms);
    }
    this.#drop(table, key, lease);
  }

  /** Ends the leases of a key under all limits that share its count. What it has used is deleted, so nothing is given back. */
  forgetState(suffix: string, key: string): void {
    this.#end(({ known }) => known.suffix === suffix, key);
  }

  /** Ends the leases of a key under all limits of a name, and gives back what is unused. */
  forgetName(name: string, key: string): void {
    for (const [table, grants] of this.#end(({ known }) => known.limit.name === name, key)) this.#giveBack(table, key, grants);
  }

  #end(fits: (table: LeaseTable) => boolean, key: string): [LeaseTable, Grant[]][] {
    const ended: [LeaseTable, Grant[]][] = [];
    for (const table of this.#holding) {
      const lease = fits(table) ? table.held.get(key) : undefined;
      if (lease === undefined) continue;
      ended.push([table, lease.end()]);
      this.#drop(table, key, lease);
    }
    return ended;
  }

  /** Ends all leases, and gives back what is unused. Resolves when Redis has answered, or does not answer in time. */
  async giveBack(): Promise<void> {
    for (const table of this.#holding) {
      for (const [key, lease] of table.held) {
        this.#giveBack(table, key, lease.end());
        this.#drop(table, key, lease);
      }
    }
    // Fetches that are in flight are given back when their answers come.
    await Promise.allSettled(this.#pending);
    await Promise.allSettled(this.#pending);
  }

  /**
   * Gives back units in Redis. It is not tried again, because nobody knows whether Redis has done it. A library may send it again after it has
   * reconnected, so a mark in Redis makes sure that it happens once.
   */
  #giveBack(table: LeaseTable, key: string, grants: readonly Grant[]): void {
    const { known } = table;
    for (const { charge, spent, units, sentMs } of grants) {
      if (spent === units) continue;
      const { redisKey } = this.#keyed(known, key, 1);
      // By the store's clock, past every deadline of this step.
      const untilMs = Math.ceil(charge.atMs + this.#now().ms - sentMs) + 2 * patienceMs;
      const once = { ...charge, receipt: { id: `${this.#member}-${this.#givenBack++}`, untilMs } };
      const done = this.#lanes.ask(new Settle(known, redisKey, once, spent, patienceMs)).catch(() => undefined);
      known.denied?.forget(key, done);
      this.#track(done);
    }
  }

  #track(done: Promise<unknown>): void {
    this.#pending.add(done);
    const end = (): boolean => this.#pending.delete(done);
    done.then(end, end);
  }

  #drop(table: LeaseTable, key: string, lease: KeyLease): void {
    if (!lease.isIdle || table.held.get(key) !== lease) return;
    table.held.delete(key);
    if (table.held.size === 0) this.#holding.delete(table);
  }

  /** Wakes up when a grant ends, to give back its unused units. No bound rests on this. */
  #wakeAt(untilMs: number, nowMs: number): void {
    if (untilMs >= this.#firesMs) return;
    clearTimeout(this.#timer);
    this.#firesMs = untilMs;
    // An injected clock has its own pace.
    const inMs = this.#clock === undefined ? untilMs - nowMs : pollMs;
    this.#timer = setTimeout(() => this.#sweep(), Math.max(1, Math.ceil(inMs)));
    this.#timer.unref();
  }

  #sweep(): void {
    this.#firesMs = Number.POSITIVE_INFINITY;
    const now = this.#now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const table of this.#holding) {
      for (const [key, lease] of table.held) {
        this.#giveBack(table, key, lease.endOver(now));
        for (const { untilMs } of lease.grants) nextMs = Math.min(nextMs, untilMs);
        this.#drop(table, key, lease);
      }
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#wakeAt(nextMs, now.ms);
  }

  #now(): Moment {
    return this.#clock === undefined ? { ms: performance.now(), wallMs: Date.now() } : { ms: timeOf(this.#clock), wallMs: 0 };
  }
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
  const made = decision(limit, quota, true, left, 0, resetMs, 0, cost, charge.atMs);
  return inState(made, charge.state as number);
}
