import type { Charge, Settler, StateView } from "../algorithms/algorithm.js";
import { copyWith, withCharge } from "../algorithms/decision.js";
import { algorithmOf, type Policy, shareOf } from "../algorithms/registry.js";
import { nothingReserved } from "../decide/charge.js";
import { type Check, type CombinedDecision, combine, createLimit, type Decision, type Limit, passesAll } from "../decide/decision.js";
import { renewingStore, type Store, scopeOf } from "../decide/store.js";
import { zeroDecision } from "../decide/zero-limits.js";
import { getOrMake, NewestMap } from "../support/maps.js";
import { abandon, allOf, andThen, isPromise, type Promised } from "../support/promises.js";
import type { Breakers } from "./breaker.js";
import { HandedOver, type LocalUsage } from "./handed-over.js";

/** The calls that may reach the store, each within what is left of a deadline. */
export type DeadlineStore = Pick<Store, "consume" | "settle">;

/** The guard whose store failed. It settles what the fallback charged in its place. */
export interface FallbackUser extends Settler<Policy> {
  /** Runs `settle` with the store, within the timeout. */
  settleInTime(settle: (store: DeadlineStore) => Promised<number>): Promised<number>;
}

/** Decides what the store cannot. Each decision is `degraded`, and has a charge if something was charged. */
export interface FallbackDecider {
  decide(checks: readonly Check[], user: FallbackUser): CombinedDecision;
  peek(limit: Limit, key: string): Decision;
}

/** Decides without counting: allows every request, or rejects every request. */
export class NoFallback implements FallbackDecider {
  readonly #allows: boolean;
  readonly #breakers: Breakers;

  constructor(allows: boolean, breakers: Breakers) {
    this.#allows = allows;
    this.#breakers = breakers;
  }

  decide(checks: readonly Check[]): CombinedDecision {
    return combine(
      checks,
      checks.map(({ limit, cost }) => this.#uncounted(limit, cost)),
    );
  }

  peek(limit: Limit): Decision {
    return this.#uncounted(limit, 1);
  }

  #uncounted(limit: Limit, cost: number): Decision {
    const retryAfterMs = this.#allows ? 0 : this.#breakers.waitMs;
    const degradedBy = this.#allows ? "allow" : "deny";
    return copyWith(zeroDecision(limit, cost), { allowed: this.#allows, retryAfterMs, degraded: true, degradedBy });
  }
}

/** How many keys with unreported usage are kept at least; the oldest are dropped. */
const keptKeys = 100_000;

/**
 * Shared by all guards with the same store, fallback and share, so that any of them can report the usage of the others. Weak: a store that
 * is garbage collected leaves nothing here.
 */
const instances = new WeakMap<object, WeakMap<Breakers, Map<number, LocalFallback>>>();

/**
 * Limits in this process while the store is down, with this process's share of each limit. When the store is back, the first request of
 * a key reports the key's usage to it (the hand-over). What the store has no room for keeps counting here.
 */
export class LocalFallback implements FallbackDecider {
  readonly #fallback: Store<"sync">;
  readonly #processes: number;
  readonly #breakers: Breakers;
  readonly #shares = new WeakMap<Limit, Limit>();
  /** Hand-overs in flight. A key that is used meanwhile is removed, because its report is outdated. */
  readonly #handingOver = new Map<string, Promise<void>>();
  readonly #unreported = new NewestMap<LocalUsage>(keptKeys);
  /** When the last unreported usage expires, by the fallback's clock. */
  #unreportedUntilMs = Number.NEGATIVE_INFINITY;

  static of(fallback: Store<"sync">, processes: number, breakers: Breakers): LocalFallback {
    const ofFallback = getOrMake(instances, scopeOf(fallback), () => new WeakMap());
    const ofStore = getOrMake(ofFallback, breakers, () => new Map());
    return getOrMake(ofStore, processes, () => new LocalFallback(fallback, processes, breakers));
  }

  private constructor(fallback: Store<"sync">, processes: number, breakers: Breakers) {
    this.#fallback = fallback;
    this.#processes = processes;
    this.#breakers = breakers;
  }

  get scope(): object {
    return scopeOf(this.#fallback);
  }

  /** Whether there may be usage to report when the store returns. */
  get hasUnreported(): boolean {
    return this.#unreportedUntilMs > Number.NEGATIVE_INFINITY;
  }

  decide(checks: readonly Check[], user: FallbackUser): CombinedDecision {
    const made = this.#fallback.consumeAll(checks.map((check) => ({ ...check, limit: this.#shareForChange(check.limit, check.key) })));
    for (const decision of made) this.#noteExpiry(decision);
    const counted = made.map((decision, i) => this.#degraded((checks[i] as Check).limit, decision));
    if (passesAll(checks, counted)) {
      checks.forEach(({ limit, key, dryRun }, i) => {
        const decision = counted[i] as Decision;
        if (decision.allowed && dryRun !== true) this.#attachCharge(limit, key, decision, user);
      });
    }
    return combine(checks, counted);
  }

  peek(limit: Limit, key: string): Decision {
    return this.#degraded(limit, this.#fallback.peek(this.#shareOf(limit), key));
  }

  /** Records usage that has happened. Returns the units that were counted. */
  charge(limit: Limit, key: string, cost: number): number {
    const share = this.#shareForChange(limit, key);
    const units = this.#fallback.settle(share, key, nothingReserved, cost);
    this.#usageOf(idOf(share, key), limit);
    this.#noteExpiry(this.#fallback.peek(share, key));
    return units;
  }

  /** Settles a charge made here. If its usage was reported, it is settled in the store. */
  #settle(usage: LocalUsage, limit: Limit, key: string, charge: Charge, cost: number, store: DeadlineStore): Promised<number> {
    const share = this.#shareOf(limit);
    const settle = (): Promised<number> => {
      if (usage.handedOver !== undefined) return usage.handedOver.settle(limit, share, key, charge, cost, store);
      const units = this.#fallback.settle(share, key, charge, cost);
      if (units > 0) this.#noteExpiry(this.#fallback.peek(share, key));
      return units;
    };
    // Wait for a hand-over in flight, because it decides where the charge is.
    const inFlight = this.#handingOver.get(idOf(share, key));
    return inFlight === undefined ? settle() : inFlight.then(settle, settle);
  }

  reset(limit: Limit, key: string): void {
    const share = this.#shareForChange(limit, key);
    this.#fallback.reset(share, key);
    this.#unreported.delete(idOf(share, key));
  }

  /** Reports the unreported usage of these keys to the store. Fails if the store fails. */
  handOver(checks: readonly Check[], store: () => DeadlineStore): void | PromiseLike<void> {
    return andThen(allOf(checks.map(({ limit, key }) => this.#report(limit, key, store))), () => undefined);
  }

  #report(requested: Limit, key: string, store: () => DeadlineStore): void | Promise<void> {
    const id = idOf(this.#shareOf(requested), key);
    const inFlight = this.#handingOver.get(id);
    if (inFlight !== undefined) return inFlight;
    const { limit = requested, owed } = this.#unreported.get(id) ?? {};
    const used = this.#fallback.peek(this.#shareOf(limit), key);
    const units = Math.max(unitsOf(used), owed !== undefined && used.atMs < owed.untilMs ? owed.units : 0);
    if (units === 0) {
      if (used.atMs > this.#unreportedUntilMs) this.#unreportedUntilMs = Number.NEGATIVE_INFINITY;
      return;
    }
    const target = store();
    const handingOver = andThen<MaybeCharged, MaybeCharged>(
      chargeUpTo(units, (units) => target.consume(withoutHold(limit), key, units)),
      (made) => this.#reportDebt(limit, key, made, target),
    );
    if (!isPromise(handingOver)) {
      this.#dropReported(limit, key, used, units, handingOver);
      return;
    }
    const settled = async (): Promise<void> => {
      try {
        const charge = await handingOver;
        // If the key was used meanwhile, all its usage is reported again later: too much is safer than too little.
        if (this.#handingOver.get(id) === report) this.#dropReported(limit, key, used, units, charge);
      } finally {
        if (this.#handingOver.get(id) === report) this.#handingOver.delete(id);
      }
    };
    const report = settled();
    abandon([report]);
    this.#handingOver.set(id, report);
    return report;
  }

  /** Reports the debt of a key too, once the store has counted its other usage. */
  #reportDebt(limit: Limit, key: string, made: MaybeCharged, store: DeadlineStore): Promised<MaybeCharged> {
    const debt = made === undefined ? 0 : debtIn(this.#fallback.keyState(this.#shareOf(limit), key).state);
    return debt === 0 ? made : andThen<number, MaybeCharged>(store.settle(limit, key, nothingReserved, debt), () => made);
  }

  /** Drops usage that the store has charged. What it had no room for keeps counting here. */
  #dropReported(limit: Limit, key: string, used: Decision, units: number, charge: Decision | undefined): void {
    if (charge === undefined) return;
    const share = this.#shareOf(limit);
    this.#fallback.reset(share, key);
    const id = idOf(share, key);
    const reported = this.#unreported.get(id);
    if (reported !== undefined) reported.handedOver = new HandedOver(charge, used, reported.decisions);
    this.#unreported.delete(id);
    const rest = units - charge.cost;
    if (rest === 0) return;
    const usage = this.#usageOf(id, limit);
    const recoveryMs = limit.algorithm.recoveryMs?.(limit.policy, rest);
    if (recoveryMs !== undefined) usage.owed = { units: rest, untilMs: used.atMs + recoveryMs };
    this.#noteExpiry(this.#fallback.consume(withoutHold(share), key, rest), usage.owed?.untilMs);
  }

  #usageOf(id: string, limit: Limit): LocalUsage {
    const usage = getOrMake(this.#unreported, id, () => ({ limit, decisions: 0 }));
    if (limit.policy.quota > usage.limit.policy.quota) usage.limit = limit;
    return usage;
  }

  /** Keeps `hasUnreported` true until this decision's state expires, and until `untilMs`. */
  #noteExpiry({ atMs, resetAfterMs }: Decision, untilMs = Number.NEGATIVE_INFINITY): void {
    this.#unreportedUntilMs = Math.max(this.#unreportedUntilMs, atMs + resetAfterMs, untilMs);
  }

  /** The share of a limit, for a call that changes the key, so that a hand-over in flight is outdated. */
  #shareForChange(limit: Limit, key: string): Limit {
    const share = this.#shareOf(limit);
    if (this.#handingOver.size > 0) this.#handingOver.delete(idOf(share, key));
    return share;
  }

  #shareOf(limit: Limit): Limit {
    if (this.#processes === 1) return limit;
    return getOrMake(this.#shares, limit, () => createLimit(limit.name, shareOf(limit.policy, this.#processes)));
  }

  /** Attaches the charge that was made here. Only this process can settle it. */
  #attachCharge(limit: Limit, key: string, decision: Decision, user: FallbackUser): void {
    const usage = this.#usageOf(idOf(this.#shareOf(limit), key), limit);
    usage.decisions++;
    const settle: Settler<Policy>["settle"] = (of, key, charge, cost) =>
      user.settleInTime((store) => this.#settle(usage, of, key, charge, cost, store));
    // Slots that were reported to the store come back there by themselves.
    const renew: NonNullable<Settler<Policy>["renew"]> = (of, key, charge) =>
      usage.handedOver === undefined ? renewingStore(this.#fallback).renew(this.#shareOf(of), key, charge) : decision;
    withCharge(decision, limit, key, { scope: user.scope, dataId: undefined, settle, renew });
  }

  #degraded(limit: Limit, decision: Decision): Decision {
    // A cost above this share's limit may pass when the store is back.
    const never = decision.retryAfterMs === Number.POSITIVE_INFINITY && decision.cost <= limit.policy.quota;
    const retryAfterMs = never ? this.#breakers.waitMs : decision.retryAfterMs;
    return copyWith(decision, { retryAfterMs, policy: limit.policy, degraded: true, degradedBy: "fallback" });
  }
}

/** The limit without a hold, so that units are charged at once: what was used or held here counts as used in the store. */
function withoutHold(limit: Limit): Limit {
  return limit.policy.holdMs === undefined ? limit : { ...limit, holdMs: 0 };
}

/** Unique, because names and state kinds contain no line breaks. */
function idOf({ name, policy }: Limit, key: string): string {
  return `${name}\n${policy.stateKind}\n${key}`;
}

type MaybeCharged = Decision | undefined;

/** Charges these units, or as many as there is room for. Undefined if there is no room. */
function chargeUpTo(units: number, charge: (units: number) => Promised<Decision>): Promised<MaybeCharged> {
  return andThen<Decision, MaybeCharged>(charge(units), (whole) => {
    if (whole.allowed) return whole;
    if (whole.remaining === 0) return undefined;
    return andThen<Decision, MaybeCharged>(charge(whole.remaining), (part) => (part.allowed ? part : undefined));
  });
}

/** The units by which a key is in debt, rounded up. */
function debtIn(state: StateView): number {
  switch (state.kind) {
    case "empty":
      return 0;
    case "bucket":
      return Math.max(Math.ceil(-state.level), 0);
    case "queue":
      return Math.max(Math.ceil(state.length - state.capacity), 0);
    case "log":
      return Math.max(state.total - state.limit, 0);
    case "windows":
      return Math.max(
        state.windows.reduce((units, { count, weight }) => units + Math.floor(count * weight), -state.limit),
        0,
      );
    case "held":
      return debtIn(state.used);
  }
}

/** The units of a key that still count, from a peek. */
function unitsOf(peeked: Decision): number {
  return algorithmOf(peeked.policy).used?.(peeked.policy, peeked) ?? peeked.limit - peeked.remaining;
}
