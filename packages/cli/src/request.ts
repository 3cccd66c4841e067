import type { Key } from "@floodgate/core";
import type { RuleSet } from "@floodgate/core/rules";
import { clientAddress } from "./address.js";
import { type AskedRequest, isOwnKey, keyNames } from "./app.js";
import { Failure } from "./failure.js";
import { keyOf } from "./key-text.js";
import { didYouMean } from "./output/words.js";

/** What the options of `check` tell of a request, besides its method and path. */
export interface RequestOptions {
  readonly ip?: string;
  readonly ipv6Prefix: number;
  readonly key?: readonly string[];
  readonly header?: readonly string[];
  readonly route?: string;
}

/** @throws Failure where the options are no request. */
export function requestOf(line: string, options: RequestOptions, { rules }: RuleSet): AskedRequest {
  const parts = /^(?:([A-Za-z-]+) +)?(\/\S*)$/.exec(line.trim());
  if (parts === null) throw new Failure("usage", `--request is a method and a path: --request "POST /posts?page=2".`);
  const known = rules.flatMap(keyNames).filter(isOwnKey);
  // Without a prototype: a header may be called constructor.
  const keys: Record<string, Key> = Object.create(null);
  for (const text of options.key ?? []) {
    const [name, value] = pair("key", text, "=", "user=42");
    if (!known.includes(name)) throw new Failure("usage", noSuchKey(name, known));
    keys[name] = keyOf(value);
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
  // What was given is not shown: it may be a secret.
  throw new Failure("usage", `a --${option} has no name and value. Write --${option} ${example}.`);
}

function noSuchKey(name: string, known: readonly string[]): string {
  const are = known.length === 0 ? "none" : [...new Set(known)].join(", ");
  return `no rule counts by ${JSON.stringify(name)}.${didYouMean(name, known)} The keys of the app that they count by: ${are}.`;
}
