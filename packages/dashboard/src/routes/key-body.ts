import type { Key, LimiterKey } from "@floodgate/core";
import { ipKey, keyOfText, missingKeyText } from "@floodgate/core/rules";
import { invalidBody, isOptionalText, isText, type JsonBody } from "./json.js";

/**
 * The key that somebody has typed, for a rule. A network such as `2001:db8::/56` becomes its first address; the rule's limiter groups addresses
 * by its own `ipv6Prefix`.
 * @param words what the rule counts by: "ip, user". Undefined for limiters.
 * @returns undefined if the rule counts by something else, such as more parts.
 */
export function typedKey(typed: string | readonly string[], words: string | undefined): LimiterKey | undefined {
  const names = words === undefined || words === "a function" ? undefined : words.split(", ");
  if (typeof typed === "string") {
    if (typed.startsWith(missingKeyText(""))) return keyOfText(typed);
    if (names === undefined) return typed;
    return names.length === 1 ? part(names[0], typed) : undefined;
  }
  if (names !== undefined && names.length !== typed.length) return undefined;
  const parts = typed.map((text, i) => part(names?.[i], text));
  return parts.includes(undefined) ? undefined : (parts as Key);
}

function part(name: string | undefined, typed: string): string | undefined {
  if (name === "ip") {
    const address = typed.replace(/^(.*:.*)\/\d+$/, "$1");
    return ipKey(address, 128) === undefined ? undefined : address;
  }
  return name === "global" && typed !== "global" ? undefined : typed;
}

/** A key as the page names it: the text or texts that the app knows, or the id of a top key. */
interface KeyQueryParts {
  readonly key: string | readonly string[] | undefined;
  readonly id: string | undefined;
  readonly rule: string | undefined;
}

const maxParts = 8;

/** @throws Refusal */
export function keyQuery({ key, id, rule }: JsonBody): KeyQueryParts {
  if ((key === undefined) === (id === undefined)) throw invalidBody("give either `key` or `id`");
  if (!isOptionalText(key) && !isTuple(key)) throw invalidBody(`\`key\` must be a text, or a list of at most ${maxParts} texts`);
  if (!isOptionalText(id)) throw invalidBody("`id` must be a text");
  if (!isOptionalText(rule)) throw invalidBody("`rule` must be a rule's name");
  return { key, id, rule };
}

const maxMs = 366 * 86_400_000;

/** @throws Refusal */
export function blockMs({ forMs }: JsonBody): number {
  if (typeof forMs === "number" && Number.isSafeInteger(forMs) && forMs >= 1000 && forMs <= maxMs) return forMs;
  throw invalidBody(`\`forMs\` must be a whole number from 1000 to ${maxMs}`);
}

/** @throws Refusal */
export function grantOf({ plan, untilMs }: JsonBody): { readonly plan: string; readonly untilMs: number } {
  if (!isText(plan)) throw invalidBody("`plan` must be the name of a plan");
  const leftMs = typeof untilMs === "number" && Number.isSafeInteger(untilMs) ? untilMs - Date.now() : 0;
  if (leftMs > 0 && leftMs <= 10 * maxMs) return { plan, untilMs: untilMs as number };
  throw invalidBody("`untilMs` must be an instant in the next ten years, in milliseconds since the epoch");
}

function isTuple(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.length <= maxParts && value.every(isText);
}
