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
  const quotas = numbersOf("limit", Math.min);
  const windows = numbersOf("window", Math.max);
  const shadows = numbersOf("shadow", Math.min);
  const held = numbersOf("slotsHeld", sum);
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

  const keys = numbersOf("keys", sum);
  const breakers = numbersOf("breakers", sum);
  for (const state of ["closed", "open", "half-open"]) breakers.add(0, state, "");
  for (const store of stores) {
    if (store.size !== undefined) keys.add(store.size);
    for (const [server, state] of store.breakers) breakers.add(1, state, server);
  }

  const versions = numbersOf("rulesVersions", sum);
  const refused = numbersOf("rulesRefused", sum);
  refused.add(0);
  const loaded = numbersOf("rulesLoaded", Math.min);
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

interface Numbers {
  /** @param attributes the values of the instrument's attributes, none of which has a line break. */
  add(number: number, ...attributes: string[]): void;
  all(): readonly Reading[];
}

/**
 * The readings of one instrument, by the values of its attributes.
 * @param join makes one number of two with the same attributes.
 */
function numbersOf(id: NowId, join: (a: number, b: number) => number): Numbers {
  const values = new Map<string, number>();
  return {
    add(number, ...attributes) {
      const attribute = attributes.join("\n");
      const known = values.get(attribute);
      values.set(attribute, known === undefined ? number : join(known, number));
    },
    all: () => Array.from(values, ([attribute, value]) => ({ attributes: attributesOf(instruments[id], attribute.split("\n")), value })),
  };
}

function sum(a: number, b: number): number {
  return a + b;
}
