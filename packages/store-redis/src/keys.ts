import type { Policy } from "@floodgate/core";
import { kindOf } from "./algorithms.js";

/** Characters to escape: the brace that ends a hash tag, the escape character itself, and lone surrogates (not valid in UTF-8). */
const special = /[%}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const mayBeSpecial = /[%}\ud800-\udfff]/;

/**
 * The request's key in braces, so that all limits of one key share a Cluster slot. Unique for each key: special characters are written
 * as `%` and their code, the empty string as `%00`.
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

/** The key of the units that are held of a state, if its limit holds units. */
export function heldKey(redisKey: string): string {
  return `${redisKey}:holds`;
}

/** The key of a lease's record. */
export function recordOf(redisKey: string, lease: string): string {
  return `${redisKey}:lease-${lease}`;
}

/** The rest of the Redis key of a name's block and ban. No kind of state is "blocks". */
export function blockSuffix(name: string): string {
  return `:${name}:blocks`;
}

/** The rest of the Redis key: the limit's name and the kind of state. A kind has no colon, so two pairs never combine to one text. */
export function keySuffix(name: string, policy: Policy): string {
  return `:${name}:${kindOf(policy)}`;
}

/** The Redis key of what a key has used of a limit, for tools. @param prefix the `prefix` of the store. */
export function storedKey(prefix: string, key: string, { name, policy }: { readonly name: string; readonly policy: Policy }): string {
  return `${prefix}:${hashTag(key)}${keySuffix(name, policy)}`;
}

/** What a Redis key of the store holds. */
export interface StoredKey {
  /** The key that a limit counts, as events show it. */
  readonly key: string;
  /** The name of the limit. */
  readonly name: string;
  /** `state`: what the key has used. `block`: until when it is turned away. */
  readonly holds: "state" | "block";
  /** The `stateKind` of the policies that share the state; undefined for a block. */
  readonly stateKind: string | undefined;
}

/** The beginnings of all kinds of state, and how they begin in a key. */
const kinds = ["fixed-window", "sliding-window-counter", "sliding-window-log", "token-bucket smooth", "token-bucket interval"]
  .concat("leaky-bucket", "gcra", "calendar-window hour", "calendar-window day", "calendar-window week", "calendar-window month")
  .concat("calendar-window year", "concurrency")
  .map((stateKind) => [stateKind, `${kindOf({ stateKind })}-`] as const);

/**
 * Reads a Redis key of a store, for tools that list what Redis holds. Returns undefined for keys that are not a limit's state or block. Units
 * that are held have a key of their own, which is read like that of their state: a limit may have both, or one of them.
 * @param prefix the `prefix` of the store.
 */
export function parseStoredKey(prefix: string, redisKey: string): StoredKey | undefined {
  if (!redisKey.startsWith(`${prefix}:{`)) return undefined;
  const text = redisKey.slice(prefix.length + 2).replace(/:holds$/, "");
  const end = text.indexOf("}:");
  const at = text.lastIndexOf(":");
  if (end < 0 || at < end + 2) return undefined;
  const kind = text.slice(at + 1);
  const [stateKind, begins = ""] = kinds.find(([, begins]) => kind.startsWith(begins)) ?? [];
  // Numbers; or the first day of a calendar's windows, if it has one, and the time zone, which may contain dashes. Then how long units are held.
  const [shared = "", heldMs] = kind.slice(begins.length).split("-h-");
  const rest = /^(?:\d+(?:-\d+)*|(?:(\d+)-)?([A-Z][A-Z\d_+/-]*))$/.exec(shared);
  if (kind !== "blocks" && (stateKind === undefined || rest === null)) return undefined;
  const [numbers = "", first, zone] = rest ?? [];
  const tag = text.slice(0, end);
  return {
    key: tag === "%00" ? "" : unescaped(tag),
    name: text.slice(end + 2, at),
    holds: kind === "blocks" ? "block" : "state",
    stateKind:
      stateKind &&
      [stateKind, ...(zone === undefined ? [numbers.replaceAll("-", " ")] : first === undefined ? [zone] : [first, zone])]
        .concat(heldMs === undefined ? [] : ["held", heldMs])
        .join(" "),
  };
}

function unescaped(tag: string): string {
  return tag.replace(/%(25|7D|D[89A-F][\dA-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
