import type { Policy } from "../algorithms/registry.js";
import { type Store, scopeOf } from "../decide/store.js";
import type { BreakerState } from "../events/events.js";
import { breakerStates } from "../failure/breaker.js";
import { openLimiters } from "../limits/create-limiter.js";
import type { Limiter } from "../limits/limiter.js";
import type { CompiledRule } from "../rules/compiled-rule.js";
import type { Granted } from "../rules/plans.js";
import { type RuleWords, wordsOf } from "../rules/reasons.js";
import type { RuleSource } from "../rules/rule.js";
import { openMiddlewares } from "./rate-limit-setup.js";

const worstFirst: readonly BreakerState[] = ["open", "half-open", "closed"];

/** A limiter of `createLimiter`, or a rule of a middleware. */
export interface InventoryLimit {
  readonly name: string;
  readonly limiter: Limiter;
  readonly shadow: boolean;
  /** Undefined if a function of the request answers the policy. */
  readonly policy: Policy | undefined;
  /** The policies of plans, by plan. */
  readonly plans: ReadonlyMap<string, Policy> | undefined;
  /** The grant of a key, as text, that is in force. */
  grantOf?(key: string): Granted | undefined;
  /** What the rule counts. Undefined for a limiter of `createLimiter`. */
  readonly rule: RuleWords | undefined;
  /** The live source of the rule. */
  readonly source: RuleSource | undefined;
}

/** A store that a limiter or a middleware uses. Stores over the same data are one. */
export interface InventoryStore {
  readonly store: Store;
  /** How many keys it holds now. Undefined if it does not know. */
  readonly size: number | undefined;
  /** The state of its circuit breaker, the worst one of all parts of the store. Undefined if it has none. */
  readonly breaker: BreakerState | undefined;
  /** The states of its circuit breakers, by part of the store, such as a server of a Cluster; by "" for a store without parts. */
  readonly breakers: ReadonlyMap<string, BreakerState>;
}

/** What is in use in this process. */
export interface Inventory {
  readonly limits: readonly InventoryLimit[];
  readonly stores: readonly InventoryStore[];
  /** The live sources of rules. */
  readonly sources: readonly RuleSource[];
}

/**
 * What is in use in this process now: all limiters and middlewares that are not closed, whenever they were made. It keeps none of them alive:
 * what the app no longer refers to disappears. Empty in runtimes without `WeakRef`.
 */
export function inventory(): Inventory {
  const limiters = openLimiters.values();
  const middlewares = openMiddlewares.values();
  const limits = [
    ...middlewares.flatMap(({ version: { rules, limiters }, source }) =>
      rules.all.map((rule) => limitOfRule(rule, limiters.get(rule.name) as Limiter, source)),
    ),
    ...limiters.map((limiter) => {
      const { name, policy } = limiter;
      return { name, limiter, shadow: false, policy, plans: undefined, rule: undefined, source: undefined };
    }),
  ];
  const stores = new Map<object, Store>();
  for (const { store } of [...middlewares, ...limiters]) if (!stores.has(scopeOf(store))) stores.set(scopeOf(store), store);
  return {
    limits,
    stores: [...stores.values()].map((store) => {
      const breakers = breakerStates(store);
      const states = new Set(breakers.values());
      return { store, size: store.size, breaker: worstFirst.find((state) => states.has(state)), breakers };
    }),
    sources: [...new Set(middlewares.map(({ source }) => source))].filter((source) => source !== undefined),
  };
}

function limitOfRule<Req>(rule: CompiledRule<Req>, limiter: Limiter, source: RuleSource | undefined): InventoryLimit {
  const { name, shadow, fixed, plans } = rule;
  return {
    name,
    limiter,
    shadow,
    policy: fixed?.policy,
    plans: plans && new Map([...plans].map(([plan, limit]) => [plan, limit.policy])),
    grantOf: (key) => rule.grantOf(key),
    rule: wordsOf(rule.options),
    source,
  };
}
