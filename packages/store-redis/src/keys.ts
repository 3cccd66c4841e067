import type { Policy } from "@floodgate/core";
import { kindOf } from "./algorithms.js";

/** What a Redis Cluster may not see in a key, or no text can hold: the brace that ends a hash tag, our escape, half a surrogate pair. */
const special = /[%}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const mayBeSpecial = /[%}\ud800-\udfff]/;

/**
 * Whom a limit counts, between braces: all limits of one request key are in one Cluster slot. Different for different keys:
 * what would end the tag or could not be sent is written as `%` and its code, and no text at all as `%00`.
 */
export function hashTag(key: string): string {
  if (key === "") return "{%00}";
  return mayBeSpecial.test(key) ? `{${key.replace(special, escaped)}}` : `{${key}}`;
}

function escaped(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** The key that marks a receipt as redeemed, in the Cluster slot of its state. No kind of state begins with "receipt". */
export function markOf(redisKey: string, receipt: string): string {
  return `${redisKey}:receipt-${receipt}`;
}

/** What follows the tag: the limit's name, and the algorithm with its times. These hold no colon, so no name runs into them. */
export function keySuffix(name: string, policy: Policy): string {
  return `:${name}:${kindOf(policy)}`;
}
