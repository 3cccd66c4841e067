import type { RuleSource, Store } from "@floodgate/core";
import { getOrMake } from "@floodgate/core/adapter";
import { type Inventory, type InventoryLimit, inventory, policyText } from "@floodgate/core/rules";
import { scopeOf } from "@floodgate/core/store";
import type { RuleInfo, SourceInfo } from "../contract.js";
import { textOf } from "../text.js";
import { StoreCounts } from "./latencies.js";
import type { StoreReport } from "./report.js";

/** New rules that are looked up between two refreshes. A look-up reads all limits, and an app may make a limiter for each user. */
const maxLookUps = 10;

/** Limits, stores and sources that are listed. An app that makes them of user input has any number. */
export const maxListed = 500;

/** The limits, stores and sources that exist in this process, and what was counted of each store. */
export class InUse {
  /** By the identity of a store's data. */
  readonly #counts = new WeakMap<object, StoreCounts>();
  /** Which store the rule of a name counts in. Rules of one name on several stores are counted as one. */
  #scopes = new Map<string, object>();
  #inventory: Inventory = { limits: [], stores: [], sources: [] };
  /** Counts what no store that is in use can have done. */
  readonly #unknown = new StoreCounts();
  readonly #read: () => Inventory;
  #lookUpsLeft = maxLookUps;

  constructor(read: () => Inventory = inventory) {
    this.#read = read;
    this.refresh();
  }

  /** Reads again what exists. Called once a second. */
  refresh(): void {
    this.#lookUpsLeft = maxLookUps;
    this.#look();
  }

  #look(): void {
    this.#inventory = this.#read();
    this.#scopes = new Map();
    for (const { name, limiter } of this.#inventory.limits) {
      if (!this.#scopes.has(name)) this.#scopes.set(name, scopeOf(limiter.store));
    }
  }

  get limits(): readonly InventoryLimit[] {
    return this.#inventory.limits;
  }

  /** @param rule undefined for a failure, whose event does not name the store: then it is the one that can fail, or has failed. */
  readonly countsOf = (rule: string | undefined): StoreCounts => {
    if (rule === undefined) {
      const withBreaker = this.#inventory.stores.filter(({ breaker }) => breaker !== undefined);
      const failed = withBreaker.find(({ breaker }) => breaker !== "closed") ?? withBreaker[0] ?? this.#inventory.stores[0];
      return failed === undefined ? this.#unknown : this.#countsAt(scopeOf(failed.store));
    }
    let scope = this.#scopes.get(rule);
    if (scope === undefined) {
      if (this.#lookUpsLeft-- > 0) this.#look();
      // A limiter that no longer exists is looked up once only.
      scope = this.#scopes.get(rule) ?? this.#unknown;
      this.#scopes.set(rule, scope);
    }
    return scope === this.#unknown ? this.#unknown : this.#countsAt(scope);
  };

  #countsAt(scope: object): StoreCounts {
    return getOrMake(this.#counts, scope, () => new StoreCounts());
  }

  rules(): RuleInfo[] {
    const ids = this.#sourceIds();
    return listed(this.limits).map((limit) => ruleInfo(limit, limit.source && ids.get(limit.source)));
  }

  stores(nowMs: number): StoreReport[] {
    const named = numbering();
    const rulesOf = new Map<object, Set<string>>();
    for (const { name, limiter } of listed(this.limits)) {
      getOrMake(rulesOf, scopeOf(limiter.store), () => new Set()).add(name);
    }
    return this.#inventory.stores.slice(0, maxListed).map(({ store, size, breaker }) => {
      const scope = scopeOf(store);
      const counts = this.#countsAt(scope);
      const rules = [...(rulesOf.get(scope) ?? [])];
      const kind = kindOf(store);
      const base = store.dataId === undefined ? `${kind}:${rules.join(",").slice(0, 200)}` : `${kind}:${store.dataId}`;
      const latencies = counts.latencies.histogram(nowMs);
      return { id: named(base), kind, rules, breaker, size, latencies, errors: counts.errors(), evictions: counts.evictions };
    });
  }

  sources(): SourceInfo[] {
    const ids = this.#sourceIds();
    return this.#inventory.sources.slice(0, maxListed).map((source) => {
      const { name = "rules", version, refused } = source;
      return { id: ids.get(source) as string, name, version, refused: refused && { atMs: refused.atMs, reason: textOf(refused.error) } };
    });
  }

  #sourceIds(): Map<RuleSource, string> {
    const named = numbering();
    return new Map(this.#inventory.sources.map((source) => [source, named(source.name ?? "rules")]));
  }
}

/** Tells things of one name apart: the second `rules` is `rules#2`. */
function numbering(): (name: string) => string {
  const known = new Map<string, number>();
  return (name) => {
    const times = (known.get(name) ?? 0) + 1;
    known.set(name, times);
    return times === 1 ? name : `${name}#${times}`;
  };
}

/** The first limits, each once: a rule that several middlewares share on one store is one. */
export function listed(limits: readonly InventoryLimit[]): InventoryLimit[] {
  const known = new Map<string, Set<object>>();
  const distinct: InventoryLimit[] = [];
  for (const limit of limits) {
    if (distinct.length === maxListed) break;
    const scope = scopeOf(limit.limiter.store);
    const scopes = getOrMake(known, limit.name, () => new Set());
    if (!scopes.has(scope)) distinct.push(limit);
    scopes.add(scope);
  }
  return distinct;
}

function ruleInfo({ name, shadow, policy, plans, rule, source }: InventoryLimit, sourceId: string | undefined): RuleInfo {
  return {
    name,
    kind: rule === undefined ? "limiter" : "rule",
    mode: shadow ? "shadow" : "enforce",
    policy: policy === undefined ? "set by a function of the request" : policyText(policy),
    match: rule?.match,
    key: rule?.key,
    plans: [...(plans ?? [])].map(([plan, own]) => ({ name: plan, policy: policyText(own) })),
    ban: rule?.ban,
    source: sourceId,
    version: source?.version,
  };
}

/** A store that processes share is in Redis, unless it is somebody's own. Minifiers change class names, so they come last. */
function kindOf(store: Store): string {
  if (store.mode === "sync" && store.size !== undefined) return "memory";
  if (store.dataId !== undefined) return "redis";
  return store.constructor.name;
}
