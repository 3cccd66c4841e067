import { getOrMake } from "@floodgate/core/adapter";
import { type CompiledRule, wordsOf } from "@floodgate/core/rules";
import type { Command } from "commander";
import type { Cluster, Redis } from "ioredis";
import type { CliRequest } from "../app.js";
import { Failure } from "../failure.js";
import { type Io, paint } from "../io.js";
import { examples } from "../options.js";
import { count, policyText, table } from "../output/format.js";
import { json, sanitize } from "../output/terminal.js";
import { withRedis } from "../redis/connection.js";
import { limitName, storedKeys } from "../redis/stored-keys.js";
import { compileRules, fileRulesOf, findRules, type LoadedRules, type RulesOptions, rulesOptions } from "../rules/rules-in-force.js";

/** Maximum number of keys looked at to find the limits that are defined in code. */
const maxKeys = 10_000;

/** Limits that have counts in Redis, and no rule of their name. */
interface LimitsInCode {
  readonly limits: readonly { readonly name: string; readonly keys: number }[];
  /** Whether there are keys in Redis that were not looked at. */
  readonly more: boolean;
}

export function addRules(program: Command, io: Io): void {
  const command = program
    .command("rules")
    .description("List the rules that are in force, and the limits in Redis that an app defines in its code.");
  rulesOptions(command).option("--json", "print JSON");
  examples(command, "rules --redis redis://127.0.0.1:6379", "rules --file limits.yaml").action((options: RulesOptions) =>
    rules(io, options),
  );
}

async function rules(io: Io, options: RulesOptions): Promise<void> {
  if (options.file !== undefined && options.redis === undefined) {
    // Without Redis there is nothing to ask but the file.
    print(io, options, await fileRulesOf(io, options.file, options), undefined);
    return;
  }
  await withRedis(options, async (redis) => {
    const loaded = await findRules(io, options, redis);
    const found = await limitsInCode(redis, options.prefix, loaded);
    if (loaded === undefined && found.limits.length === 0) {
      throw new Failure(
        "refused",
        `there are no rules under ${options.rulesKey}, and no limits under the prefix ${options.prefix}. Push some rules (floodgate push limits.yaml), or name others with --rules-key and --prefix.`,
      );
    }
    print(io, options, loaded, found);
  });
}

async function limitsInCode(redis: Redis | Cluster, prefix: string, loaded: LoadedRules | undefined): Promise<LimitsInCode> {
  const ofRules = new Set(loaded?.set.rules.map(({ name }) => name));
  const { keys, more } = await storedKeys(redis, prefix, maxKeys);
  const counts = new Map<string, Set<string>>();
  for (const stored of keys) {
    const name = limitName(stored.name);
    if (ofRules.has(name)) continue;
    getOrMake(counts, name, () => new Set()).add(stored.key);
  }
  const limits = [...counts].map(([name, known]) => ({ name, keys: known.size }));
  return { limits: limits.sort((one, other) => other.keys - one.keys || (one.name < other.name ? -1 : 1)), more };
}

function print(io: Io, options: RulesOptions, loaded: LoadedRules | undefined, found: LimitsInCode | undefined): void {
  if (options.json === true) {
    const { set, name = options.rulesKey, version } = loaded ?? {};
    io.out(
      json({
        name,
        version: version ?? null,
        rules: set?.rules ?? [],
        ...(set?.exempt && { exempt: set.exempt }),
        ...(found && { limitsInCode: found.limits, more: found.more }),
      }),
    );
    return;
  }
  io.out(
    `${paint(io, "bold", headingOf(options, loaded))}\n${loaded === undefined ? "" : rulesTable(io, compileRules(loaded.set, { ipv6Prefix: 56 }))}`,
  );
  if (found === undefined || found.limits.length === 0) return;
  const rows = found.limits.map(({ name, keys }) => [name, keys.toLocaleString("en")]);
  io.out(`\n${paint(io, "bold", "Limits that an app defines in its code")}\n${table(io, ["limit", "keys"], rows)}`);
  if (found.more) io.out(`  Only the first ${maxKeys.toLocaleString("en")} keys in Redis were looked at: there may be more.\n`);
}

function headingOf({ rulesKey }: RulesOptions, loaded: LoadedRules | undefined): string {
  if (loaded === undefined) return `${sanitize(rulesKey)}: no rules`;
  const { name, version, set } = loaded;
  return `${sanitize(name)}: ${version === undefined ? "" : `version ${sanitize(version)}, `}${count(set.rules.length, "rule")}`;
}

/** Rules in columns. */
function rulesTable(io: Io, rules: readonly CompiledRule<CliRequest>[]): string {
  const rows = rules.map(({ name, shadow, fixed, options }) => {
    const { match, key, ban } = wordsOf(options);
    const { cost = 1, plans, settle, exempt } = options;
    const extras = [
      plans && `plans: ${Object.keys(plans).join(", ")}`,
      ban && `ban of ${ban}`,
      settle && `settled by ${settle}`,
      exempt && "exemptions",
    ];
    const policy = fixed && policyText(fixed.policy);
    return [name, match, key, policy ?? "", `${cost}`, shadow ? "shadow" : "enforce", extras.filter(Boolean).join("; ")];
  });
  const headings = ["rule", "matches", "by", "policy", "cost", "mode"];
  return table(io, rows.some((row) => row.at(-1) !== "") ? [...headings, "and"] : headings, rows);
}
