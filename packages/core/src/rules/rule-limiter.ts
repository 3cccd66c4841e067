import type { Decision } from "../decision.js";
import { FloodgateError, shown } from "../errors.js";
import type { EventListener } from "../events.js";
import { encodeKey, type Key } from "../key.js";
import type { Limit } from "../limit.js";
import { BoundLimiter, type Limiter } from "../limiter.js";
import type { Policy } from "../policy.js";
import { giveBack } from "../refund.js";
import { isPromise, type Store } from "../store.js";

/** The limiter of a rule, to be used beside the middleware: to reset a login's count, say. */
export function ruleLimiter(
  store: Store,
  guard: Store,
  rule: { name: string; fixed: Limit | undefined; limits: ReadonlyMap<string, Limit> },
  onEvent: EventListener | undefined,
): Limiter {
  return rule.fixed === undefined
    ? new PerRequestLimiter(store, guard, rule.name, rule.limits, onEvent)
    : new BoundLimiter(store, guard, rule.fixed, onEvent);
}

/** Where the policy is a function of the request there is none to decide by, but what was decided can be given back and forgotten. */
class PerRequestLimiter implements Limiter {
  readonly name: string;
  readonly store: Store;
  readonly guard: Store;
  readonly #limits: ReadonlyMap<string, Limit>;
  readonly onEvent: EventListener | undefined;

  constructor(store: Store, guard: Store, name: string, limits: ReadonlyMap<string, Limit>, onEvent: EventListener | undefined) {
    this.name = name;
    this.store = store;
    this.guard = guard;
    this.#limits = limits;
    this.onEvent = onEvent;
  }

  get policy(): Policy {
    throw this.#noPolicy();
  }

  get limit(): Limit {
    throw this.#noPolicy();
  }

  consume(): never {
    throw this.#noPolicy();
  }

  peek(): never {
    throw this.#noPolicy();
  }

  refund(key: Key, decision: Decision): number | Promise<number> {
    const limit = this.#limits.get(decision.policy.stateKind);
    return limit === undefined ? 0 : (giveBack(this.guard, limit, encodeKey(key), decision, this.onEvent) as number | Promise<number>);
  }

  /** Forgets what a key has used under every policy that has been decided. */
  reset(key: Key): void | Promise<void> {
    const answers = [...this.#limits.values()].map((limit) => this.guard.reset(limit, encodeKey(key)));
    return answers.some(isPromise) ? Promise.all(answers).then(() => undefined) : undefined;
  }

  #noPolicy(): FloodgateError {
    return new FloodgateError(
      "FLOODGATE_NO_POLICY",
      `The policy of ${shown(this.name)} is a function of the request, so without a request there is none. Make a limiter of each policy with createLimiter; refund and reset work here.`,
    );
  }
}
