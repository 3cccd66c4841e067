import { type Duration, formatDuration, parseDuration } from "../support/duration.js";
import type { Match } from "./match.js";
import type { Rule } from "./rule.js";

/** What a rule counts, in words for people. */
export interface RuleWords {
  /** The requests: `"POST /posts"`, `"all requests"`, `"a function"`. */
  readonly match: string;
  /** What it counts by: `"ip"`, `"ip, user"`, `"a function"`. */
  readonly key: string;
  /** The ban: `"1h after 5 rejections within 1m"`. Undefined without one. */
  readonly ban: string | undefined;
}

/** Describes a rule whose options are checked. */
export function wordsOf<Req>({ match, key = "ip", ban }: Rule<Req, string>): RuleWords {
  return {
    match: match === undefined ? "all requests" : typeof match === "function" ? "a function" : matchWords(match),
    key: typeof key === "function" ? "a function" : [key].flat().join(", "),
    ban: ban === undefined ? undefined : `${durationWords(ban.for)} after ${ban.after} rejections within ${durationWords(ban.within)}`,
  };
}

function durationWords(duration: Duration): string {
  return formatDuration(parseDuration(duration));
}

function matchWords({ method, path, header = {}, domain, descriptor = {} }: Match): string {
  const target = [method, path].filter((part) => part !== undefined).map(choiceWords);
  if (domain !== undefined) target.push(`descriptors in ${choiceWords(domain)}`);
  const entries = Object.entries(descriptor).map(entryWords);
  if (domain === undefined && entries.length > 0) target.push("descriptors");
  return [...target, ...Object.entries(header).map(entryWords), ...entries].join(" ") || "all requests";
}

function choiceWords(choice: string | readonly string[]): string {
  return [choice].flat().join(" or ");
}

function entryWords([name, value]: [string, string | readonly string[] | boolean]): string {
  if (typeof value === "boolean") return value ? `with ${name}` : `without ${name}`;
  return `with ${name}: ${choiceWords(value)}`;
}
