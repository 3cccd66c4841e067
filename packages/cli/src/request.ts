import type { Key } from "@floodgate/core";
import type { RuleSet } from "@floodgate/core/rules";
import type { CliRequest } from "./app.js";
import { Failure } from "./failure.js";
import { clientAddress, isAppKey, keyNames, parseKey } from "./keys.js";
import { didYouMean } from "./output/format.js";

/** The options of `check` that describe a request, besides `--request`. */
export interface RequestOptions {
  readonly ip?: string;
  readonly ipv6Prefix: number;
  readonly key?: readonly string[];
  readonly header?: readonly string[];
  readonly route?: string;
}

/**
 * Makes the request that the options of `check` describe.
 * @throws Failure if an option is invalid.
 */
export function requestOf(line: string, options: RequestOptions, { rules }: RuleSet): CliRequest {
  const parts = /^(?:([A-Za-z-]+) +)?(\/\S*)$/.exec(line.trim());
  if (parts === null) throw new Failure("usage", `--request must be a method and a path. Write --request "POST /posts?page=2".`);
  const known = rules.flatMap(keyNames).filter(isAppKey);
  // Without a prototype, because a header may be called constructor.
  const keys: Record<string, Key> = Object.create(null);
  for (const text of options.key ?? []) {
    const [name, value] = pair("key", text, "=", "user=42");
    if (!known.includes(name)) throw new Failure("usage", noSuchKey(name, known));
    keys[name] = parseKey(value);
  }
  const headers: Record<string, string> = Object.create(null);
  for (const text of options.header ?? []) {
    const [name, value] = pair("header", text, ":", '"x-api-key: abc"');
    const lower = name.toLowerCase();
    headers[lower] = headers[lower] === undefined ? value : `${headers[lower]}, ${value}`;
  }
  const ip = options.ip === undefined ? undefined : clientAddress(options.ip, options.ipv6Prefix);
  return { method: (parts[1] ?? "GET").toUpperCase(), path: parts[2] as string, headers, ip, route: options.route, keys };
}

function pair(option: string, text: string, separator: string, example: string): [string, string] {
  const at = text.indexOf(separator);
  if (at > 0) return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  // The value is not shown, because it may be a secret.
  throw new Failure("usage", `a --${option} has no name and value. Write --${option} ${example}.`);
}

function noSuchKey(name: string, known: readonly string[]): string {
  const list = known.length === 0 ? "none" : [...new Set(known)].join(", ");
  return `no rule counts by ${JSON.stringify(name)}.${didYouMean(name, known)} The app's keys in these rules: ${list}.`;
}
