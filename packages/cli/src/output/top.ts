import { type Io, paint } from "../io.js";
import type { Look, SeenKey } from "../redis/look.js";
import { count, localTime, table, waitText } from "./format.js";

/** The limits, and the first `rows` keys. */
export function lookText(io: Io, { atMs, limits, keys, more }: Look, rows: number): string {
  const total = count(keys.length, "key");
  const counted = more ? `the first ${total} in Redis were looked at (--sample)` : `${total} in Redis`;
  const summaries = limits.map(({ name, inCode, keys, limited, blocked }) => [
    nameText(name, inCode),
    `${keys}`,
    inCode ? "?" : `${limited}`,
    `${blocked}`,
  ]);
  const shown = keys.slice(0, rows);
  const heading = paint(io, "bold", `${localTime(atMs)}, ${counted}`);
  if (limits.length === 0) return `${heading}\n`;
  const first = table(io, ["limit", "keys", "limited", "blocked"], summaries);
  const hidden = keys.length - shown.length;
  const rest = hidden === 0 ? "" : `  and ${hidden.toLocaleString("en")} more: --rows ${keys.length} shows all\n`;
  const unknown = limits.some(({ inCode }) => inCode) ? unknownText : "";
  return `${heading}\n${first}${shown.length === 0 ? "" : `\n${keysText(io, shown)}`}${rest}${unknown}`;
}

/** Redis holds what a key has used, but not what it may use. */
const unknownText = "  ?: only the app knows this limit. With --policy, floodgate status shows one of its keys\n";

export function keysText(io: Io, keys: readonly SeenKey[]): string {
  const rows = keys.map((key) => [
    nameText(key.name, key.inCode),
    key.key,
    key.state === "unknown" ? "?" : key.state,
    usedText(key),
    waitUntilText(key),
  ]);
  return table(io, ["limit", "key", "state", "used", "next allowed"], rows);
}

function nameText(name: string, inCode: boolean): string {
  return inCode ? `${name} (in code)` : name;
}

function usedText({ count }: SeenKey): string {
  return count === undefined ? "?" : `${count.used} of ${count.limit}`;
}

function waitUntilText({ retryAfterMs, state }: SeenKey): string {
  if (state === "unknown") return "?";
  if (state === "open" || state === "would be limited") return "now";
  return retryAfterMs === Number.POSITIVE_INFINITY ? "never" : `in ${waitText(retryAfterMs)}`;
}

export function seenKeyJson({ count, stateKind: _, ...key }: SeenKey): object {
  return { ...key, used: count?.used ?? null, limit: count?.limit ?? null };
}

/** One look for `--json`: durations in milliseconds, times in milliseconds since the epoch. */
export function lookJson({ atMs, limits, keys, more }: Look, rows: number): object {
  return {
    atMs,
    limits,
    keys: keys.slice(0, rows).map(seenKeyJson),
    /** How many keys were seen and are not in `keys`. */
    keysLeftOut: Math.max(0, keys.length - rows),
    more,
  };
}
