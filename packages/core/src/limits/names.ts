import type { Guard } from "../decide/guard.js";
import { LocalFallback } from "../failure/fallback.js";
import { FloodgateError, shown, wrongOption } from "../support/errors.js";
import { getOrMake } from "../support/maps.js";

/**
 * Whose name it is on a store. Equal owners may share it: policies by their JSON (`ownerOf`), policy functions and rule sources by identity.
 * On a fallback it is the store that the fallback stands in for.
 */
export type NameOwner = string | object;

export interface Claim {
  readonly name: string;
  readonly owner: NameOwner;
  readonly at?: readonly (string | number)[];
}

type Names = Map<string, { readonly owner: NameOwner; users: number }>;

/** The owner and the number of users of each name, by store. */
const namesOfStores = new WeakMap<object, Names>();

/** The owner of a name with these policies (and plans): the same text if they are equal. */
export function ownerOf(...policies: readonly unknown[]): string {
  return JSON.stringify(policies);
}

/** Names appear in headers, Redis keys and metrics, so they must be printable ASCII. */
export function checkName(where: string, name: unknown): string {
  if (typeof name === "string" && /^[\x20-\x7e]{1,128}$/.test(name)) return name;
  const must = "1 to 128 printable ASCII characters (it appears in the response headers)";
  throw wrongOption(where, "name", must, name, 'name: "api"', []);
}

/**
 * Claims names, all or none: each has one owner on its store, because one name is one count. Returns a function that releases them, once.
 * @param guard if it has a fallback, the names are claimed there too.
 * @throws FloodgateError `FLOODGATE_NAME_TAKEN` if a name already has another owner.
 */
export function claimNames(where: string, guard: Guard, claims: readonly Claim[]): () => void {
  const { scope, fallback } = guard;
  const all = claims.map((claim) => ({ ...claim, where, names: namesOf(scope) }));
  if (fallback !== undefined) {
    const names = namesOf(fallback.scope);
    for (const claim of claims) all.push({ ...claim, where: `${where}: onStoreError`, names, owner: fallback });
  }
  for (const { where, names, name, owner, at = [] } of all) {
    const known = names.get(name)?.owner;
    if (known === undefined || known === owner) continue;
    throw new FloodgateError(
      "FLOODGATE_NAME_TAKEN",
      `${where}: the name ${shown(name)} already stands for ${otherOf(known, owner)} on this store. Give this one another name, or a store of its own (in Redis: another prefix). If it replaces the other, close that first: limit.close().`,
      { at: [...at, "name"] },
    );
  }
  for (const { names, name, owner } of all) getOrMake(names, name, () => ({ owner, users: 0 })).users++;
  return () => {
    for (const { names, name } of all.splice(0)) {
      const known = names.get(name) as { users: number };
      if (--known.users === 0) names.delete(name);
    }
  };
}

function otherOf(known: NameOwner, owner: NameOwner): string {
  if (known instanceof LocalFallback || owner instanceof LocalFallback) return "a limit of another store, or another share of it,";
  return typeof known === "string" || typeof owner === "string" ? "another policy" : "rules of another source, or another function,";
}

function namesOf(scope: object): Names {
  return getOrMake(namesOfStores, scope, () => new Map());
}
