import type { Algorithm, NamedPolicy } from "../algorithms/algorithm.js";
import { algorithmOf, type Policy } from "../algorithms/registry.js";
import { FloodgateError, shown } from "../support/errors.js";

/** A named policy with its algorithm, as stores receive it. Made once, compared by identity. */
export interface Limit<P = Policy> extends NamedPolicy<P> {
  readonly algorithm: Algorithm<P>;
}

export function createLimit(name: string, policy: Policy): Limit {
  return Object.freeze({ name, policy, algorithm: algorithmOf(policy) });
}

/** Names appear in headers, Redis keys and metrics, so they must be printable ASCII. */
export function checkName(where: string, name: unknown): string {
  if (typeof name === "string" && /^[\x20-\x7e]{1,128}$/.test(name)) return name;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`name\` must be 1 to 128 printable ASCII characters (it appears in the response headers), but was ${shown(name)}. Write name: "api".`,
  );
}
