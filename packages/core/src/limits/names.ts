import type { Guard } from "../stores/guard.js";
import { LocalFallback } from "../stores/local-fallback.js";
import { FloodgateError, shown } from "../support/errors.js";

/**
 * What a name on a store stands for: a policy as `meaningOf` tells it; what decides the policy of each request or version of the
 * rules, which is known by itself; or on a fallback, what another store leaves to it.
 */
export type Meaning = string | object;

export interface Claim {
  readonly name: string;
  readonly meaning: Meaning;
  /** Where the name was given, for an error. */
  readonly at?: readonly (string | number)[];
}

/** A claim on one of the stores where the name is counted. */
interface PlacedClaim extends Claim {
  readonly where: string;
  readonly scope: object;
}

type Names = Map<string, { readonly meaning: Meaning; users: number }>;

/** What each name on a store stands for, and how many use it. */
const names = new WeakMap<object, Names>();

/** Equal for policies (and plans) that say the same. */
export function meaningOf(...policies: readonly unknown[]): string {
  return JSON.stringify(policies);
}

/**
 * One name on one store is one count, so two meanings of it are a mistake.
 * @param guard if it has a fallback, the names are counted there too.
 * @throws FloodgateError `FLOODGATE_NAME_TAKEN`
 */
export function checkNames(where: string, guard: Guard, claims: readonly Claim[]): void {
  for (const claim of placed(where, guard, claims)) checkClaim(claim);
}

/**
 * Takes names, all or none; answers how to give them back.
 * @param guard if it has a fallback, the names are taken there too.
 * @throws FloodgateError `FLOODGATE_NAME_TAKEN` where one has another meaning already.
 */
export function claimNames(where: string, guard: Guard, claims: readonly Claim[]): () => void {
  const all = placed(where, guard, claims);
  for (const claim of all) checkClaim(claim);
  for (const { scope, name, meaning } of all) {
    const known = namesOf(scope).get(name);
    if (known === undefined) namesOf(scope).set(name, { meaning, users: 1 });
    else known.users++;
  }
  return () => {
    for (const { scope, name } of all) {
      const known = namesOf(scope).get(name);
      if (known !== undefined && --known.users === 0) namesOf(scope).delete(name);
    }
  };
}

function placed(where: string, guard: Guard, claims: readonly Claim[]): PlacedClaim[] {
  const own = claims.map((claim) => ({ ...claim, where, scope: guard.scope }));
  const { fallback } = guard;
  if (fallback === undefined) return own;
  const { scope } = fallback;
  return [...own, ...claims.map((claim) => ({ ...claim, where: `${where}: onStoreError`, scope, meaning: fallback }))];
}

function checkClaim({ where, scope, name, meaning, at }: PlacedClaim): void {
  const known = names.get(scope)?.get(name)?.meaning;
  if (known === undefined || known === meaning) return;
  throw new FloodgateError(
    "FLOODGATE_NAME_TAKEN",
    `${where}: the name ${shown(name)} already stands for ${otherOf(known, meaning)} on this store, and one name on one store is one count. Give this one another name, or a store of its own (in Redis: another prefix); where it takes the place of the other, close() that first.`,
    { at: [...(at ?? []), "name"] },
  );
}

function otherOf(known: Meaning, meaning: Meaning): string {
  if (known instanceof LocalFallback || meaning instanceof LocalFallback) return "a limit of another store, or another share of it,";
  return typeof known === "string" || typeof meaning === "string" ? "another policy" : "rules of another source, or another function,";
}

function namesOf(scope: object): Names {
  let known = names.get(scope);
  if (known === undefined) {
    known = new Map();
    names.set(scope, known);
  }
  return known;
}
