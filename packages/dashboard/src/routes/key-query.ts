import { Refusal } from "./json.js";

/** A key as the page names it: the text or texts that the app knows, or the id of a top key. */
export interface KeyQueryParts {
  readonly key: string | readonly string[] | undefined;
  readonly id: string | undefined;
  readonly rule: string | undefined;
}

/** Longer texts are no keys that a person types. */
const longest = 4000;
const mostParts = 8;

/** @throws Refusal */
export function keyQuery({ key, id, rule }: Record<string, unknown>): KeyQueryParts {
  if ((key === undefined) === (id === undefined)) throw invalid("give either `key` or `id`");
  if (key !== undefined && !isText(key) && !isTuple(key)) throw invalid(`\`key\` must be a text, or a list of at most ${mostParts} texts`);
  if (id !== undefined && !isText(id)) throw invalid("`id` must be a text");
  if (rule !== undefined && !isText(rule)) throw invalid("`rule` must be a rule's name");
  return { key: key as KeyQueryParts["key"], id: id as string | undefined, rule: rule as string | undefined };
}

const mostMs = 366 * 86_400_000;

/** @throws Refusal */
export function blockMs({ forMs }: Record<string, unknown>): number {
  if (typeof forMs === "number" && Number.isSafeInteger(forMs) && forMs >= 1000 && forMs <= mostMs) return forMs;
  throw invalid(`\`forMs\` must be a whole number from 1000 to ${mostMs}`);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= longest;
}

function isTuple(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.length <= mostParts && value.every(isText);
}

function invalid(what: string): Refusal {
  return new Refusal(400, "invalid", `Invalid body: ${what}.`);
}
