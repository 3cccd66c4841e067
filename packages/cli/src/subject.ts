import type { Limiter, LimiterKey, Store } from "@floodgate/core";
import { RateLimit } from "@floodgate/core/adapter";
import { type CompiledRule, RuleExplainer, type RuleSet } from "@floodgate/core/rules";
import type { RulesRedis } from "@floodgate/rules";
import { redisStore } from "@floodgate/store-redis";
import type { Command } from "commander";
import { type AskedRequest, appOptions, askedReader, hasSecretKey } from "./app.js";
import { countedKey, type KeyOptions } from "./counted-key.js";
import { Failure } from "./failure.js";
import type { Io } from "./io.js";
import { each, formed, ipv6PrefixOption, type RedisOptions, redisOptions } from "./options.js";
import { didYouMean } from "./output/words.js";
import { notePlan } from "./plan.js";
import { withRedis } from "./redis.js";
import { pullText, readText, soundRules } from "./rules-text.js";

/** Far longer than a Redis takes that is well, also one that is far away. */
export const timeoutMs = 5000;

/** The options of `status` and `reset`. */
export interface SubjectOptions extends RedisOptions, KeyOptions {
  readonly rule: string;
  readonly file?: string;
  readonly prefix: string;
  readonly plan?: string;
  readonly json?: true;
}

/** What `redisStore` takes. */
const prefix = formed(/^[^{}]{1,200}$/u, "It is 1 to 200 characters, and no braces.");

export function subjectOptions(command: Command): Command {
  command
    .requiredOption("--rule <name>", "the rule")
    .option("--key <value>", "whom it counts: a user, an address, an API key or its digest; once for each part", each)
    .option("--ip <address>", "the address, where the rule counts by it or for want of a key");
  redisOptions(command)
    .option("--file <file>", "take the rules from a file; default: those in Redis")
    .option("--prefix <prefix>", "what the store's keys begin with", prefix, "floodgate")
    .option("--plan <name>", "the plan of the key; default: each that the rule has");
  return ipv6PrefixOption(command).option("--json", "print JSON");
}

/** A rule and a key of it, and where they are counted. */
export interface Subject {
  readonly rule: CompiledRule<AskedRequest>;
  readonly key: LimiterKey;
  /** The key as events show it: a digest in place of a secret. */
  readonly keyText: string;
  readonly store: Store;
  readonly limiter: Limiter;
}

/** @throws Failure where Redis, the rules, the rule or the key is none. */
export function withSubject(io: Io, options: SubjectOptions, use: (subject: Subject) => Promise<void>): Promise<void> {
  return withRedis(options, async (redis) => {
    const set = await rulesOf(io, options, redis);
    const plain = set.rules.find(({ name }) => name === options.rule);
    if (plain === undefined) throw noSuchRule(options.rule, set);
    const store = redisStore(redis, { prefix: options.prefix, denyCache: false });
    const app = appOptions(set, options);
    const rules = { current: set, subscribe: () => () => undefined };
    const { limiters } = new RateLimit("floodgate", { ...app, rules, store, timeoutMs }, [], askedReader, () => store);
    const { all } = new RuleExplainer("floodgate", set, app, askedReader);
    const rule = all.find(({ name }) => name === options.rule) as CompiledRule<AskedRequest>;
    notePlan(io, options.plan, [plain]);
    const limiter = limiters.get(options.rule) as Limiter;
    const key = countedKey(plain, options);
    if (hasSecretKey(plain) && app.keySecret === undefined && options.key?.some((text) => digest.test(text)) !== true) {
      io.err("floodgate: FLOODGATE_KEY_SECRET is not set, so the key's plain digest is looked up. Set it if the app has a `keySecret`.\n");
    }
    await use({ rule, key, keyText: limiter.keyText(key), store, limiter });
  });
}

/** A secret key as events show it. */
const digest = /^secret:[\da-f]{64}$/;

async function rulesOf(io: Io, { file, rulesKey }: SubjectOptions, redis: RulesRedis): Promise<RuleSet> {
  const { text, name } = file === undefined ? { ...(await pullText(redis, rulesKey)), name: rulesKey } : await readText(io, file);
  return soundRules(io, text, name);
}

function noSuchRule(name: string, { rules }: RuleSet): Failure {
  const known = rules.map((rule) => rule.name);
  const are = `${known.slice(0, 20).join(", ")}${known.length > 20 ? ", ..." : ""}`;
  return new Failure("usage", `there is no rule ${JSON.stringify(name)}.${didYouMean(name, known)} The rules: ${are}.`);
}
