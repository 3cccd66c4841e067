import type { Decision } from "../decision.js";
import { createLimit, type Limit } from "../limit.js";
import { abandon, andThen, type Check, isPromise, type Store, scopeOf } from "../store.js";
import type { Breaker } from "./breaker.js";
import { shareOf } from "./share.js";
import { type AskedStore, type Substitute, unitsOf } from "./substitute.js";
import { HandedOver, Tallies } from "./tallies.js";

/** Of all who ask a store and have the same share of the same fallback, one: what one has used there another hands over. */
const known = new WeakMap<object, FallbackLimits[]>();

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
  #used = false;

  static of(fallback: Store<"sync">, processes: number, breaker: Breaker): FallbackLimits {
    const all = known.get(scopeOf(fallback)) ?? [];
    known.set(scopeOf(fallback), all);
    let one = all.find((other) => other.#breaker === breaker && other.#processes === processes);
    if (one === undefined) {
      one = new FallbackLimits(fallback, processes, breaker);
      all.push(one);
    }
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
    return this.#used;
  }

  consume(limit: Limit, key: string, cost: number): Decision {
    this.#used = true;
    return this.#charged(limit, key, this.#fallback.consume(this.#changing(limit, key), key, cost));
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    this.#used = true;
    const decisions = this.#fallback.consumeAll(checks.map((check) => ({ ...check, limit: this.#changing(check.limit, check.key) })));
    return decisions.map((decision, i) => {
      const { limit, key } = checks[i] as Check;
      return this.#charged(limit, key, decision);
    });
  }

  peek(limit: Limit, key: string): Decision {
    return this.#degraded(limit, this.#fallback.peek(this.#shareOf(limit), key));
  }

  settle(limit: Limit, key: string, decision: Decision, cost: number, store: AskedStore): number | PromiseLike<number> {
    const share = this.#shareOf(limit);
    const settle = (): number | PromiseLike<number> => {
      const handedOver = this.#tallies.handedOver(decision);
      if (handedOver !== undefined) return handedOver.settle(limit, share, key, decision, cost, store);
      return this.#fallback.settle(share, key, decision, cost);
    };
    // Where the store is being told, it will have been or not.
    const underWay = this.#telling.get(idOf(share, key));
    return underWay === undefined ? settle() : underWay.then(settle, settle);
  }

  reset(limit: Limit, key: string): void {
    const share = this.#changing(limit, key);
    this.#fallback.reset(share, key);
    this.#tallies.close(idOf(share, key));
  }

  handOver(checks: readonly Check[], store: AskedStore): void | PromiseLike<void> {
    const told = checks.map(({ limit, key }) => this.#tell(limit, key, store));
    if (told.some(isPromise)) return Promise.all(told).then(() => undefined);
  }

  #tell(limit: Limit, key: string, store: AskedStore): void | Promise<void> {
    const share = this.#shareOf(limit);
    const id = idOf(share, key);
    const underWay = this.#telling.get(id);
    if (underWay !== undefined) return underWay;
    const used = this.#fallback.peek(share, key);
    if (unitsOf(used) === 0) return;
    const charging = asMuchAs(unitsOf(used), (units) => store.consume(limit, key, units));
    if (!isPromise(charging)) {
      this.#told(share, key, used, charging);
      return;
    }
    const settled = async (): Promise<void> => {
      try {
        const charge = await charging;
        // What was used since is told next time, with all the rest: rather too much than too little.
        if (this.#telling.get(id) === telling) this.#told(share, key, used, charge);
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
  #told(share: Limit, key: string, used: Decision, charge: Decision | undefined): void {
    if (charge === undefined) return;
    const rest = unitsOf(used) - charge.cost;
    this.#fallback.reset(share, key);
    if (rest > 0) this.#fallback.consume(share, key, rest);
    this.#tallies.close(idOf(share, key), new HandedOver(charge, used.atMs));
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

  /** A decision that has charged the key, if it allows. */
  #charged(limit: Limit, key: string, decision: Decision): Decision {
    const degraded = this.#degraded(limit, decision);
    if (decision.allowed) this.#tallies.add(idOf(this.#shareOf(limit), key), degraded);
    return degraded;
  }

  #degraded(limit: Limit, decision: Decision): Decision {
    // A cost that this share can never hold may well pass when the store is back.
    const never = decision.retryAfterMs === Number.POSITIVE_INFINITY && decision.cost <= limit.policy.quota;
    const retryAfterMs = never ? this.#breaker.waitMs : decision.retryAfterMs;
    return { ...decision, retryAfterMs, policy: limit.policy, degraded: true };
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
