import { shareOf } from "../algorithms/registry.js";
import { isCharged, passesAll } from "../limits/all-or-nothing.js";
import { type ChargeRecord, charged, restated } from "../limits/charge.js";
import type { Decision } from "../limits/decision.js";
import { createLimit, type Limit } from "../limits/limit.js";
import { abandon, andThen, isPromise } from "../support/promises.js";
import type { Breaker } from "./breaker.js";
import { type Check, type Store, scopeOf } from "./store.js";
import { type AskedStore, type Substitute, unitsOf } from "./substitute.js";
import { Tallies } from "./tallies.js";

/**
 * Of all who ask a store and have the same share of the same fallback, one: what one has used there another hands over. By the fallback,
 * the store's breaker and the processes; a store that is gone leaves nothing here.
 */
const known = new WeakMap<object, WeakMap<Breaker, Map<number, FallbackLimits>>>();

/**
 * Limits in this process while the store is away, each limit by this process's share of it. When the store is back, the first
 * request of a key tells it what the key has used here; until all of that is charged there, the rest counts here.
 */
export class FallbackLimits implements Substitute {
  readonly mode = "sync";
  readonly #fallback: Store<"sync">;
  readonly #processes: number;
  readonly #breaker: Breaker;
  readonly #shares = new WeakMap<Limit, Limit>();
  /** What the store is being told now. A key of which more is used meanwhile is no longer here. */
  readonly #telling = new Map<string, Promise<void>>();
  readonly #tallies = new Tallies();
  /** Until when something may count here, by the fallback's clock. */
  #owesUntilMs = Number.NEGATIVE_INFINITY;

  static of(fallback: Store<"sync">, processes: number, breaker: Breaker): FallbackLimits {
    const ofFallback = known.get(scopeOf(fallback)) ?? new WeakMap<Breaker, Map<number, FallbackLimits>>();
    known.set(scopeOf(fallback), ofFallback);
    const ofStore = ofFallback.get(breaker) ?? new Map<number, FallbackLimits>();
    ofFallback.set(breaker, ofStore);
    const one = ofStore.get(processes) ?? new FallbackLimits(fallback, processes, breaker);
    ofStore.set(processes, one);
    return one;
  }

  private constructor(fallback: Store<"sync">, processes: number, breaker: Breaker) {
    this.#fallback = fallback;
    this.#processes = processes;
    this.#breaker = breaker;
  }

  /** What its counts belong to. */
  get scope(): object {
    return scopeOf(this.#fallback);
  }

  get owes(): boolean {
    return this.#owesUntilMs > Number.NEGATIVE_INFINITY;
  }

  consume(limit: Limit, key: string, cost: number): Decision {
    const made = this.#fallback.consume(this.#changing(limit, key), key, cost);
    return made.allowed ? this.#charged(limit, key, made) : this.#counted(limit, made);
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    const made = this.#fallback.consumeAll(checks.map((check) => ({ ...check, limit: this.#changing(check.limit, check.key) })));
    const passes = passesAll(checks, made);
    return made.map((decision, i) => {
      const check = checks[i] as Check;
      return isCharged(check, decision, passes) ? this.#charged(check.limit, check.key, decision) : this.#counted(check.limit, decision);
    });
  }

  peek(limit: Limit, key: string): Decision {
    return this.#degraded(limit, this.#fallback.peek(this.#shareOf(limit), key));
  }

  settle(limit: Limit, key: string, charge: ChargeRecord, cost: number, store: AskedStore): number | PromiseLike<number> {
    const share = this.#shareOf(limit);
    const settle = (): number | PromiseLike<number> => {
      const handedOver = charge.tally?.handedOver;
      if (handedOver !== undefined) return handedOver.settle(limit, share, key, charge, cost, store);
      const units = this.#fallback.settle(share, key, charge, cost);
      if (units > 0) this.#counts(this.#fallback.peek(share, key));
      return units;
    };
    // Where the store is being told, it will have been or not.
    const underWay = this.#telling.get(idOf(share, key));
    return underWay === undefined ? settle() : underWay.then(settle, settle);
  }

  reset(limit: Limit, key: string): void {
    const share = this.#changing(limit, key);
    this.#fallback.reset(share, key);
    this.#tallies.forget(idOf(share, key));
  }

  handOver(checks: readonly Check[], store: () => AskedStore): void | PromiseLike<void> {
    const told = checks.map(({ limit, key }) => this.#tell(limit, key, store));
    if (told.some(isPromise)) return Promise.all(told).then(() => undefined);
  }

  #tell(asking: Limit, key: string, store: () => AskedStore): void | Promise<void> {
    const id = idOf(this.#shareOf(asking), key);
    const underWay = this.#telling.get(id);
    if (underWay !== undefined) return underWay;
    const limit = this.#tallies.limitOf(id) ?? asking;
    const used = this.#fallback.peek(this.#shareOf(limit), key);
    const units = Math.max(unitsOf(used), this.#tallies.owedBy(id, used.atMs));
    if (units === 0) {
      if (used.atMs > this.#owesUntilMs) this.#owesUntilMs = Number.NEGATIVE_INFINITY;
      return;
    }
    const asked = store();
    const charging = asMuchAs(units, (units) => asked.consume(limit, key, units));
    if (!isPromise(charging)) {
      this.#told(limit, key, used, units, charging);
      return;
    }
    const settled = async (): Promise<void> => {
      try {
        const charge = await charging;
        // What was used since is told next time, with all the rest: rather too much than too little.
        if (this.#telling.get(id) === telling) this.#told(limit, key, used, units, charge);
      } finally {
        if (this.#telling.get(id) === telling) this.#telling.delete(id);
      }
    };
    const telling = settled();
    abandon([telling]);
    this.#telling.set(id, telling);
    return telling;
  }

  /** What the store has been charged counts here no more. */
  #told(limit: Limit, key: string, used: Decision, units: number, charge: Decision | undefined): void {
    if (charge === undefined) return;
    const share = this.#shareOf(limit);
    this.#fallback.reset(share, key);
    this.#tallies.handOver(idOf(share, key), charge, used);
    const rest = units - charge.cost;
    if (rest === 0) return;
    const tally = this.#tallies.open(idOf(share, key), limit);
    const recoveryMs = limit.algorithm.recoveryMs?.(limit.policy, rest);
    if (recoveryMs !== undefined) tally.owed = { units: rest, untilMs: used.atMs + recoveryMs };
    this.#counts(this.#fallback.consume(share, key, rest), tally.owed?.untilMs);
  }

  /** Something counts here until the last of these decisions says; a bucket of several limits, 1 ms longer. */
  #counts({ atMs, resetAfterMs }: Decision, untilMs = Number.NEGATIVE_INFINITY): void {
    this.#owesUntilMs = Math.max(this.#owesUntilMs, atMs + resetAfterMs, untilMs);
  }

  /** The share of a limit. What is being told of the key no longer holds. */
  #changing(limit: Limit, key: string): Limit {
    const share = this.#shareOf(limit);
    if (this.#telling.size > 0) this.#telling.delete(idOf(share, key));
    return share;
  }

  #shareOf(limit: Limit): Limit {
    if (this.#processes === 1) return limit;
    let share = this.#shares.get(limit);
    if (share === undefined) {
      share = createLimit(limit.name, shareOf(limit.policy, this.#processes));
      this.#shares.set(limit, share);
    }
    return share;
  }

  /** A decision that has charged the key. */
  #charged(limit: Limit, key: string, decision: Decision): Decision {
    const tally = this.#tallies.add(idOf(this.#shareOf(limit), key), limit);
    return charged(this.#counted(limit, decision), limit, key, undefined, tally);
  }

  #counted(limit: Limit, decision: Decision): Decision {
    this.#counts(decision);
    return this.#degraded(limit, decision);
  }

  #degraded(limit: Limit, decision: Decision): Decision {
    // A cost that this share can never hold may well pass when the store is back.
    const never = decision.retryAfterMs === Number.POSITIVE_INFINITY && decision.cost <= limit.policy.quota;
    const retryAfterMs = never ? this.#breaker.waitMs : decision.retryAfterMs;
    return restated(decision, { retryAfterMs, policy: limit.policy, degraded: true });
  }
}

/** Names hold no line breaks. */
function idOf({ name, policy }: Limit, key: string): string {
  return `${name}\n${policy.stateKind}\n${key}`;
}

type Charged = Decision | undefined;

/** Charges so many units, or as many as there are left. Answers the charge, if there is one. */
function asMuchAs(units: number, charge: (units: number) => Decision | PromiseLike<Decision>): Charged | PromiseLike<Charged> {
  return andThen<Decision, Charged>(charge(units), (whole) => {
    if (whole.allowed) return whole;
    if (whole.remaining === 0) return undefined;
    return andThen<Decision, Charged>(charge(whole.remaining), (part) => (part.allowed ? part : undefined));
  });
}
