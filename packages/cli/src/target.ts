import type { Limiter, LimiterKey, Store } from "@floodgate/core";
import { RateLimit } from "@floodgate/core/adapter";
import { type CompiledRule, RuleExplainer, type RuleSet } from "@floodgate/core/rules";
import type { RulesRedis } from "@floodgate/rules";
import { redisStore } from "@floodgate/store-redis";
import type { Command } from "commander";
import { appOptions, type CliRequest, cliReader, noteUnknownPlan } from "./app.js";
import { Failure } from "./failure.js";
import type { Io } from "./io.js";
import { countedKey, hasSecretKey, type KeyOptions } from "./keys.js";
import { pullText, readText, validRules } from "./load-rules.js";
import { collect, ipv6PrefixOption, matching, type RedisOptions, redisOptions } from "./options.js";
import { didYouMean } from "./output/format.js";
import { withRedis } from "./redis.js";

/** Far longer than a working Redis takes, even a distant one. */
export const timeoutMs = 5000;

/** The options of `status` and `reset`. */
export interface TargetOptions extends RedisOptions, KeyOptions {
  readonly rule: string;
  readonly file?: string;
  readonly prefix: string;
  readonly plan?: string;
  readonly json?: true;
}

/** The prefixes that `redisStore` accepts. */
const prefix = matching(/^[^{}]{1,200}$/u, "It must be 1 to 200 characters without braces.");

export function targetOptions(command: Command): Command {
  command
    .requiredOption("--rule <name>", "the name of the rule")
    .option("--key <value>", "the key that the rule counts: a user, an address, an API key or its digest (repeat for each part)", collect)
    .option("--ip <address>", "the client address, for a rule that counts by it or whose key is missing");
  redisOptions(command)
    .option("--file <file>", "read the rules from a file; default: from Redis")
    .option("--prefix <prefix>", "the prefix of the store's keys", prefix, "floodgate")
    .option("--plan <name>", "show only this plan; default: all plans of the rule");
  return ipv6PrefixOption(command).option("--json", "print JSON");
}

/** The rule and key that `status` and `reset` act on, and their counts in Redis. */
export interface Target {
  readonly rule: CompiledRule<CliRequest>;
  readonly key: LimiterKey;
  /** The key as events show it, with a digest instead of a secret. */
  readonly keyText: string;
  readonly store: Store;
  readonly limiter: Limiter;
}

/**
 * Finds the target in Redis and calls `use` with it.
 * @throws Failure if Redis does not answer, or the rules, the rule or the key are invalid.
 */
export function withTarget(io: Io, options: TargetOptions, use: (target: Target) => Promise<void>): Promise<void> {
  return withRedis(options, async (redis) => {
    const set = await rulesOf(io, options, redis);
    const plainRule = set.rules.find(({ name }) => name === options.rule);
    if (plainRule === undefined) throw noSuchRule(options.rule, set);
    const store = redisStore(redis, { prefix: options.prefix, denyCache: false });
    const app = appOptions(set, options);
    const rules = { current: set, subscribe: () => () => undefined };
    const { limiters } = new RateLimit("floodgate", { ...app, rules, store, timeoutMs }, [], cliReader, () => store);
    const { all } = new RuleExplainer("floodgate", set, app, cliReader);
    const rule = all.find(({ name }) => name === options.rule) as CompiledRule<CliRequest>;
    noteUnknownPlan(io, options.plan, [plainRule]);
    const limiter = limiters.get(options.rule) as Limiter;
    const key = countedKey(plainRule, options);
    if (hasSecretKey(plainRule) && app.keySecret === undefined && options.key?.some((text) => digest.test(text)) !== true) {
      io.err("floodgate: FLOODGATE_KEY_SECRET is not set, so the key's plain digest is looked up. Set it if the app has a `keySecret`.\n");
    }
    await use({ rule, key, keyText: limiter.keyText(key), store, limiter });
  });
}

/** The digest of a secret key, as events show it. */
const digest = /^secret:[\da-f]{64}$/;

async function rulesOf(io: Io, { file, rulesKey }: TargetOptions, redis: RulesRedis): Promise<RuleSet> {
  const { text, name } = file === undefined ? { ...(await pullText(redis, rulesKey)), name: rulesKey } : await readText(io, file);
  return validRules(io, text, name);
}

function noSuchRule(name: string, { rules }: RuleSet): Failure {
  const known = rules.map((rule) => rule.name);
  const list = `${known.slice(0, 20).join(", ")}${known.length > 20 ? ", ..." : ""}`;
  return new Failure("usage", `there is no rule ${JSON.stringify(name)}.${didYouMean(name, known)} The rules are ${list}.`);
}
