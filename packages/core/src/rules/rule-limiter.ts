import type { Policy } from "../algorithms/registry.js";
import type { Decision } from "../limits/decision.js";
import type { EventListener } from "../limits/events.js";
import type { LimiterKey } from "../limits/key.js";
import type { Limit } from "../limits/limit.js";
import { BoundLimiter, type Limiter } from "../limits/limiter.js";
import type { Receipts } from "../limits/receipt.js";
import { Settlements } from "../limits/settlements.js";
import type { Store } from "../stores/store.js";
import { FloodgateError, shown } from "../support/errors.js";
import { andThen, isPromise } from "../support/promises.js";
import type { CompiledRule } from "./compiled-rule.js";

/**
 * The limiter of a rule, to be used beside the middleware: to reset a login's count, say. It decides by the rule's own policy,
 * gives back and forgets whatever plan the key has. A ban is shown by `peek` and lifted by `reset`; `consume` does not heed it.
 */
export class RuleLimiter<Req> implements Limiter {
  readonly store: Store;
  readonly guard: Store;
  readonly onEvent: EventListener | undefined;
  readonly #rule: CompiledRule<Req>;
  readonly #settlements: Settlements;

  constructor(store: Store, guard: Store, rule: CompiledRule<Req>, onEvent: EventListener | undefined, receipts: Receipts | undefined) {
    this.store = store;
    this.guard = guard;
    this.onEvent = onEvent;
    this.#rule = rule;
    this.#settlements = new Settlements(guard, rule.name, () => rule.countedLimits(), receipts, onEvent);
  }

  get name(): string {
    return this.#rule.name;
  }

  get limit(): Limit {
    if (this.#rule.fixed !== undefined) return this.#rule.fixed;
    throw new FloodgateError(
      "FLOODGATE_NO_POLICY",
      `The policy of ${shown(this.name)} is a function of the request, so without a request there is none. Make a limiter of each policy with createLimiter; refund, settle and reset work here.`,
    );
  }

  get policy(): Policy {
    return this.limit.policy;
  }

  keyText(key: LimiterKey): string {
    return this.#rule.keyText(key);
  }

  consume(key: LimiterKey, options?: { cost?: number }): Decision | Promise<Decision> {
    return this.#of(this.limit).consume(key, options);
  }

  peek(key: LimiterKey): Decision | Promise<Decision> {
    const look = this.#of(this.limit).peek(key);
    const { ban } = this.#rule;
    if (ban === undefined) return look;
    const banned = this.#of(ban.banned).peek(key);
    if (isPromise(look) || isPromise(banned)) return Promise.all([look, banned]).then(([look, banned]) => ban.apply(look, banned));
    return ban.apply(look, banned);
  }

  refund(key: LimiterKey, charged: Decision | string): number | Promise<number> {
    return this.#settlements.refund(this.keyText(key), charged) as number | Promise<number>;
  }

  settle(key: LimiterKey, charged: Decision | string, cost: number): number | Promise<number> {
    return this.#settlements.settle(this.keyText(key), charged, cost) as number | Promise<number>;
  }

  receipt(decision: Decision): string {
    return this.#settlements.receipt(decision);
  }

  /**
   * Forgets what a key has used under every plan, or every policy that a policy function has answered in this process, and lifts its ban.
   * @throws FloodgateError `FLOODGATE_NO_POLICY` where a policy function of the request has not answered any yet.
   */
  reset(key: LimiterKey): void | Promise<void> {
    const text = this.keyText(key);
    return andThen<readonly Limit[], void>(this.#rule.countedLimits(), (limits) => {
      const answers: unknown[] = limits.map((limit) => this.guard.reset(limit, text));
      if (this.#rule.ban !== undefined) answers.push(...this.#rule.ban.reset(this.guard, text));
      return answers.some(isPromise) ? Promise.all(answers).then(() => undefined) : undefined;
    }) as void | Promise<void>;
  }

  #of(limit: Limit): BoundLimiter<"sync" | "async"> {
    return new BoundLimiter(this.store, this.guard, limit, this.onEvent, (key) => this.keyText(key));
  }
}
