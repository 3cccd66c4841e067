import type { Store } from "@floodgate/core";
import { type CompiledRule, RuleExplainer, type RuleSet } from "@floodgate/core/rules";
import { pullRules, type RulesRedis } from "@floodgate/rules";
import { type AnyRedis, redisStore } from "@floodgate/store-redis";
import type { Command } from "commander";
import { appOptions, type CliRequest, cliReader } from "../app.js";
import { Failure } from "../failure.js";
import { readText } from "../files.js";
import type { Io } from "../io.js";
import { type JsonOption, matching, type NamesOptions, type RedisOptions, redisOptions } from "../options.js";
import { validRules } from "./valid-rules.js";

/** Far longer than a working Redis takes, even a distant one. */
export const timeoutMs = 5000;

/** The options that say which rules are in force, and where their counts are. */
export interface RulesOptions extends RedisOptions, JsonOption {
  readonly file?: string;
  readonly prefix: string;
}

/** The prefixes that `redisStore` accepts. */
const prefix = matching(/^[^{}]{1,200}$/u, "It must be 1 to 200 characters without braces.");

export function rulesOptions(command: Command): Command {
  return redisOptions(command)
    .option("--file <file>", "read the rules from a file; default: from Redis")
    .option("--prefix <prefix>", "the prefix of the store's keys", prefix, "floodgate");
}

/** The rules, and the place of their text. */
export interface LoadedRules {
  readonly set: RuleSet;
  /** The file or the Redis key. */
  readonly name: string;
  /** The version in Redis; undefined for a file. */
  readonly version?: string;
}

/**
 * Reads the rules. Undefined if Redis has no rules.
 * @throws Failure if they have problems, or the file cannot be read.
 */
export async function findRules(io: Io, options: RulesOptions, redis: RulesRedis): Promise<LoadedRules | undefined> {
  const { file, rulesKey } = options;
  if (file !== undefined) return fileRulesOf(io, file, options);
  const found = await pullRules(redis, rulesKey);
  return found && { set: validRules(io, found.text, rulesKey, options), name: rulesKey, version: found.version };
}

export async function fileRulesOf(io: Io, file: string, options: NamesOptions & JsonOption): Promise<LoadedRules> {
  const { text, name } = await readText(io, file);
  return { set: validRules(io, text, name, options), name };
}

/** For where `findRules` has found none. */
export function noRules(key: string): Failure {
  return new Failure(
    "refused",
    `there are no rules under ${key}. Push some (floodgate push limits.yaml), or name another key with --rules-key.`,
  );
}

/** Rules made ready, with what the command line cannot know simulated. */
export function compileRules(set: RuleSet, options: { plan?: string; ipv6Prefix: number }): readonly CompiledRule<CliRequest>[] {
  return new RuleExplainer("floodgate", set, appOptions(set, options), cliReader).all;
}

/** The store with the counts, which always asks Redis. */
export function storeOf(redis: AnyRedis, { prefix }: { prefix: string }): Store {
  return redisStore(redis, { prefix, denyCache: false });
}
