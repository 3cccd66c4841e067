import { FloodgateError, shown } from "./errors.js";
import type { Store } from "./store.js";

/**
 * What a name on a store stands for: a policy as `meaningOf` tells it, or what decides the policy of each request or version of the
 * rules, which is known by itself.
 */
export type Meaning = string | object;

export interface Claim {
  readonly name: string;
  readonly meaning: Meaning;
  /** Where the name was given, for an error. */
  readonly at?: readonly (string | number)[];
}

/** What each name on a store stands for, and how many use it. */
const names = new WeakMap<Store, Map<string, { readonly meaning: Meaning; users: number }>>();

/** Equal for policies (and plans) that say the same. */
export function meaningOf(...policies: readonly unknown[]): string {
  return JSON.stringify(policies);
}

/**
 * One name on one store is one count, so two meanings of it are a mistake.
 * @throws FloodgateError `FLOODGATE_NAME_TAKEN`
 */
export function checkNames(where: string, store: Store, claims: readonly Claim[]): void {
  for (const { name, meaning, at } of claims) {
    const known = names.get(store)?.get(name)?.meaning;
    if (known === undefined || known === meaning) continue;
    const other =
      typeof known === "string" || typeof meaning === "string" ? "another policy" : "rules of another source, or another function,";
    throw new FloodgateError(
      "FLOODGATE_NAME_TAKEN",
      `${where}: the name ${shown(name)} already stands for ${other} on this store, and one name on one store is one count. Give this one another name, or a store of its own.`,
      { at: [...(at ?? []), "name"] },
    );
  }
}

/**
 * Takes names, all or none; answers how to give them back.
 * @throws FloodgateError `FLOODGATE_NAME_TAKEN` where one has another meaning already.
 */
export function claimNames(where: string, store: Store, claims: readonly Claim[]): () => void {
  checkNames(where, store, claims);
  let taken = names.get(store);
  if (taken === undefined) {
    taken = new Map();
    names.set(store, taken);
  }
  for (const { name, meaning } of claims) {
    const known = taken.get(name);
    if (known === undefined) taken.set(name, { meaning, users: 1 });
    else known.users++;
  }
  return () => {
    for (const { name } of claims) {
      const known = taken.get(name);
      if (known !== undefined && --known.users === 0) taken.delete(name);
    }
  };
}
