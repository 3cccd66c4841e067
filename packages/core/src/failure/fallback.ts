import type { Decision } from "../decision.js";
import { createLimit, type Limit } from "../limit.js";
import { abandon, andThen, type Check, isPromise, type Store } from "../store.js";
import type { Breaker } from "./breaker.js";
import { shareOf } from "./share.js";
import type { Charge, Substitute } from "./substitute.js";

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
  #used = false;

  constructor(fallback: Store<"sync">, processes: number, breaker: Breaker) {
    this.#fallback = fallback;
    this.#processes = processes;
    this.#breaker = breaker;
  }

  get owes(): boolean {
    return this.#used;
  }

  consume(limit: Limit, key: string, cost: number): Decision {
    this.#used = true;
    return this.#degraded(limit, this.#fallback.consume(this.#changing(limit, key), key, cost));
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    this.#used = true;
    const decisions = this.#fallback.consumeAll(checks.map((check) => ({ ...check, limit: this.#changing(check.limit, check.key) })));
    return decisions.map((decision, i) => this.#degraded((checks[i] as Check).limit, decision));
  }

  peek(limit: Limit, key: string): Decision {
    return this.#degraded(limit, this.#fallback.peek(this.#shareOf(limit), key));
  }

  settle(limit: Limit, key: string, decision: Decision, cost: number): number {
    const share = cost > decision.cost ? this.#changing(limit, key) : this.#shareOf(limit);
    return this.#fallback.settle(share, key, decision, cost);
  }

  reset(limit: Limit, key: string): void {
    this.#fallback.reset(this.#changing(limit, key), key);
  }

  handOver(checks: readonly Check[], charge: Charge): void | PromiseLike<void> {
    const told = checks.map(({ limit, key }) => this.#tell(limit, key, charge));
    if (told.some(isPromise)) return Promise.all(told).then(() => undefined);
  }

  #tell(limit: Limit, key: string, charge: Charge): void | Promise<void> {
    const share = this.#shareOf(limit);
    const id = idOf(share, key);
    const underWay = this.#telling.get(id);
    if (underWay !== undefined) return underWay;
    const units = unitsOf(this.#fallback.peek(share, key));
    if (units === 0) return;
    const charged = asMuchAs(units, (some) => charge(limit, key, some));
    if (!isPromise(charged)) {
      this.#settle(share, key, units, charged);
      return;
    }
    const settled = async (): Promise<void> => {
      try {
        const paid = await charged;
        // What was used since is told next time, with all the rest: rather too much than too little.
        if (this.#telling.get(id) === telling) this.#settle(share, key, units, paid);
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
  #settle(share: Limit, key: string, units: number, charged: number): void {
    if (charged === 0) return;
    this.#fallback.reset(share, key);
    if (charged < units) this.#fallback.consume(share, key, units - charged);
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

/** Charges so many units, or as many as there are left. Answers how many. */
function asMuchAs(units: number, charge: (units: number) => ReturnType<Charge>): number | PromiseLike<number> {
  return andThen<Decision, number>(charge(units), ({ allowed, remaining }) => {
    if (allowed) return units;
    if (remaining === 0) return 0;
    return andThen<Decision, number>(charge(remaining), (decision) => (decision.allowed ? remaining : 0));
  });
}

/** The units that still count of a key's. A queue with a longest wait has nothing left before it is full. */
function unitsOf({ limit, remaining, resetAfterMs, policy }: Decision): number {
  const units = limit - remaining;
  return policy.algorithm === "leaky-bucket" ? Math.min(units, Math.ceil((resetAfterMs * policy.flow) / policy.unit)) : units;
}
