import type { Policy } from "../algorithms/registry.js";
import type { Decision } from "../decide/decision.js";
import { type KeyState, keyStateOf } from "../decide/inspection.js";
import type { Limit } from "../decide/limit.js";
import type { Inspection, Store } from "../decide/store.js";
import type { EventListener } from "../events/events.js";
import type { Key, LimiterKey } from "../limits/key.js";
import { BoundLimiter, block, type Limiter } from "../limits/limiter.js";
import type { Receipts } from "../limits/receipt.js";
import { Settlements } from "../limits/settlements.js";
import type { Duration } from "../support/duration.js";
import { FloodgateError, shown } from "../support/errors.js";
import { allOf, andThen, isPromise } from "../support/promises.js";
import type { CompiledRule, PlannedLimit } from "./compiled-rule.js";

/**
 * A rule's limiter, for use beside the middleware: to reset the count of a login, for example. `consume` and `peek` use the rule's own
 * policy, and count no rejection towards a ban. Refunds, settlements and `reset` work for every plan.
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
      `The policy of ${shown(this.name)} is a function of the request, so it is unknown without a request. Make a limiter for each policy with createLimiter. refund, settle and reset work here.`,
    );
  }

  get policy(): Policy {
    return this.limit.policy;
  }

  keyText(key: LimiterKey): string {
    return this.#rule.keyText(key);
  }

  consume(key: Key, options?: { cost?: number }): Decision | Promise<Decision> {
    return this.#of(this.limit).consume(key, options);
  }

  block(key: LimiterKey, duration: Duration): void | Promise<void> {
    return block(this.guard, this.name, this.keyText(key), duration) as void | Promise<void>;
  }

  unblock(key: LimiterKey): void | Promise<void> {
    return this.guard.unblock(this.name, this.keyText(key));
  }

  /** @throws FloodgateError always: the name belongs to the middleware. */
  close(): never {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${shown(this.name)} is a limiter of a middleware, which holds the name. Close the middleware: limit.close().`,
    );
  }

  peek(key: LimiterKey): Decision | Promise<Decision> {
    return this.#of(this.limit).peek(key);
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
   * Deletes what a key has used under every plan, or under every policy that a policy function has returned in this process, and lifts its
   * ban.
   * @throws FloodgateError `FLOODGATE_NO_POLICY` if a policy function of the request has not returned a policy yet.
   */
  reset(key: LimiterKey): void | Promise<void> {
    const text = this.keyText(key);
    return andThen<readonly Limit[], void>(this.#rule.countedLimits(), (limits) => {
      const answers: unknown[] = limits.map((limit) => this.guard.reset(limit, text));
      if (this.#rule.ban !== undefined) answers.push(this.#rule.ban.forgive(this.guard, text));
      return answers.some(isPromise) ? Promise.all(answers).then(() => undefined) : undefined;
    }) as void | Promise<void>;
  }

  /**
   * Shows what a key has used: the count under the rule's own policy and under each plan, or under the policies that a policy function has
   * returned in this process.
   * @throws FloodgateError `FLOODGATE_NO_POLICY` if a policy function of the request has not returned a policy yet.
   */
  keyState(key: LimiterKey): KeyState | Promise<KeyState> {
    const text = this.keyText(key);
    return andThen<readonly PlannedLimit[], KeyState>(this.#rule.plannedLimits(), (limits) => {
      const answers = allOf<Inspection>(limits.map(({ limit }) => this.guard.keyState(limit, text)));
      return andThen<readonly Inspection[], KeyState>(answers, (seen) =>
        keyStateOf(seen.map((inspection, i) => [limits[i]?.plan, inspection])),
      );
    }) as KeyState | Promise<KeyState>;
  }

  #of(limit: Limit): BoundLimiter<"sync" | "async"> {
    return new BoundLimiter(this.store, this.guard, limit, this.onEvent, (key) => this.keyText(key));
  }
}
