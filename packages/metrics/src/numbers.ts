import { inventory, slotsHeld } from "@floodgate/core/rules";
import { instruments, type NowId } from "./instruments.js";
import { type Attributes, attributesOf } from "./series.js";

export interface Reading {
  readonly attributes: Attributes;
  readonly value: number;
}

/**
 * Reads what is in use in this process now.
 * @param ruleOf the name under which a rule is measured.
 */
export function readNumbers(ruleOf: (name: string) => string): Readonly<Record<NowId, readonly Reading[]>> {
  const { limits, stores, sources } = inventory();
  const quotas = new Numbers("limit", Math.min);
  const windows = new Numbers("window", Math.max);
  const shadows = new Numbers("shadow", Math.min);
  const held = new Numbers("slotsHeld", sum);
  for (const { name, policy, shadow } of limits) {
    // Rules above the cap are measured together, but have no limit together.
    if (ruleOf(name) !== name) continue;
    shadows.add(shadow ? 1 : 0, name);
    if (policy === undefined) continue;
    if (policy.algorithm === "concurrency") held.add(0, name);
    quotas.add(policy.quota, name);
    windows.add(policy.spanMs / 1000, name);
  }

  for (const name of slotsHeld()) held.add(1, ruleOf(name));

  const keys = new Numbers("keys", sum);
  const breakers = new Numbers("breakers", sum);
  for (const state of ["closed", "open", "half-open"]) breakers.add(0, state, "");
  for (const store of stores) {
    if (store.size !== undefined) keys.add(store.size);
    for (const [server, state] of store.breakers) breakers.add(1, state, server);
  }

  const versions = new Numbers("rulesVersions", sum);
  const refused = new Numbers("rulesRefused", sum);
  refused.add(0);
  const loaded = new Numbers("rulesLoaded", Math.min);
  for (const source of sources) {
    if (source.version !== undefined) versions.add(1, source.version.slice(0, 64));
    if (source.refused !== undefined) refused.add(1);
    if (source.loadedAtMs !== undefined) loaded.add(source.loadedAtMs / 1000);
  }
  return {
    limit: quotas.all(),
    window: windows.all(),
    shadow: shadows.all(),
    slotsHeld: held.all(),
    keys: keys.all(),
    breakers: breakers.all(),
    rulesVersions: versions.all(),
    rulesRefused: refused.all(),
    rulesLoaded: loaded.all(),
  };
}

/** The readings of one instrument, by the values of its attributes. */
class Numbers {
  readonly #id: NowId;
  readonly #join: (a: number, b: number) => number;
  readonly #values = new Map<string, number>();

  /** @param join makes one number of two with the same attributes. */
  constructor(id: NowId, join: (a: number, b: number) => number) {
    this.#id = id;
    this.#join = join;
  }

  /** @param attributes the values of the instrument's attributes, none of which has a line break. */
  add(number: number, ...attributes: string[]): void {
    const attribute = attributes.join("\n");
    const known = this.#values.get(attribute);
    this.#values.set(attribute, known === undefined ? number : this.#join(known, number));
  }

  all(): readonly Reading[] {
    return [...this.#values].map(([attribute, value]) => ({
      attributes: attributesOf(instruments[this.#id], attribute.split("\n")),
      value,
    }));
  }
}

function sum(a: number, b: number): number {
  return a + b;
}
