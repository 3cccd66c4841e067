import type { Key } from "@floodgate/core";
import { type Explanation, RuleExplainer, type RuleSet } from "@floodgate/core/rules";
import { appNames } from "@floodgate/simulator";
import type { Command } from "commander";
import { appOptions, type CliRequest, cliReader, noteUnknownPlan } from "./app.js";
import { Failure } from "./failure.js";
import type { Io } from "./io.js";
import { clientAddress, parseKey } from "./keys.js";
import { collect, ipv6PrefixOption, namedValue } from "./options.js";
import { didYouMean, listOf } from "./output/format.js";

/** The options of `check` and `why` that describe a request. */
export interface RequestOptions {
  readonly request?: string;
  readonly ip?: string;
  readonly ipv6Prefix: number;
  readonly key?: readonly string[];
  readonly header?: readonly string[];
  readonly route?: string;
  readonly plan?: string;
}

export function requestOptions(command: Command, request: string, key: string): Command {
  command
    .option("--request <line>", request)
    .option("--ip <address>", "the client address of the request")
    .option("--key <name=value>", key, collect)
    .option("--header <name: value>", "a header of the request (repeatable)", collect)
    .option("--route <pattern>", "the route of the request, for rules that count by route")
    .option("--plan <name>", "the plan of the request");
  return ipv6PrefixOption(command);
}

/** What each rule does with the request that the options describe. */
export function explain(io: Io, set: RuleSet, options: RequestOptions, line: string): Promise<Explanation<CliRequest>[]> {
  noteUnknownPlan(io, options.plan, set.rules);
  return new RuleExplainer("floodgate", set, appOptions(set, options), cliReader).explain(requestOf(line, options, set));
}

/**
 * Makes the request that the options describe.
 * @throws Failure if an option is invalid.
 */
function requestOf(line: string, options: RequestOptions, set: RuleSet): CliRequest {
  const parts = /^(?:([A-Za-z-]+) +)?(\/\S*)$/.exec(line.trim());
  if (parts === null) throw new Failure("usage", `--request must be a method and a path. Write --request "POST /posts?page=2".`);
  const known = appNames(set).keys;
  // Without a prototype, because a header may be called constructor.
  const keys: Record<string, Key> = Object.create(null);
  for (const text of options.key ?? []) {
    const [name, value] = namedValue("key", text, "=", "user=42");
    if (!known.includes(name)) {
      const keys = `The app's keys in these rules: ${listOf(known)}.`;
      throw new Failure("usage", `no rule counts by ${JSON.stringify(name)}.${didYouMean(name, known)} ${keys}`);
    }
    keys[name] = parseKey(value);
  }
  const headers: Record<string, string> = Object.create(null);
  for (const text of options.header ?? []) {
    const [name, value] = namedValue("header", text, ":", '"x-api-key: abc"');
    const lower = name.toLowerCase();
    headers[lower] = headers[lower] === undefined ? value : `${headers[lower]}, ${value}`;
  }
  const ip = options.ip === undefined ? undefined : clientAddress(options.ip, options.ipv6Prefix);
  return { method: (parts[1] ?? "GET").toUpperCase(), path: parts[2] as string, headers, ip, route: options.route, keys };
}
