import type { Limiter, LimiterKey, Store } from "@floodgate/core";
import type { CompiledRule, PlainRule, RuleSet } from "@floodgate/core/rules";
import type { RulesRedis } from "@floodgate/rules";
import { parsePolicy } from "@floodgate/simulator";
import type { Command } from "commander";
import { type CliRequest, keySecret, noteUnknownPlan } from "./app.js";
import { Failure } from "./failure.js";
import type { Io } from "./io.js";
import { countedKey, hasSecretKey, type KeyOptions } from "./keys.js";
import { noRules } from "./load-rules.js";
import { collect, ipv6PrefixOption } from "./options.js";
import { didYouMean } from "./output/format.js";
import { withRedis } from "./redis.js";
import { bindRules, findRules, type RulesOptions, rulesOptions } from "./rules-in-force.js";

/** The options of `status` and `reset`. */
export interface TargetOptions extends RulesOptions, KeyOptions {
  readonly rule: string;
  /** The policy of a limit that is defined in code. */
  readonly policy?: string;
  readonly plan?: string;
  readonly json?: true;
}

export function targetOptions(command: Command): Command {
  command
    .requiredOption("--rule <name>", "the name of the rule, or of a limit that is defined in code")
    .option("--key <value>", "the key that the rule counts: a user, an address, an API key or its digest (repeat for each part)", collect)
    .option("--ip <address>", "the client address, for a rule that counts by it or whose key is missing")
    .option("--policy <policy>", "for a limit that is defined in code: its policy, such as 'fixed-window 5/15m' or '100/1m'");
  rulesOptions(command).option("--plan <name>", "show only this plan; default: all plans of the rule");
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
    const set = options.policy === undefined ? await rulesOf(io, options, redis) : limitInCode(options, options.policy);
    const plainRule = set.rules.find(({ name }) => name === options.rule);
    if (plainRule === undefined) throw noSuchRule(options.rule, set);
    const { all, limiters, store } = bindRules(set, redis, options);
    const rule = all.find(({ name }) => name === options.rule) as CompiledRule<CliRequest>;
    noteUnknownPlan(io, options.plan, [plainRule]);
    const limiter = limiters.get(options.rule) as Limiter;
    const key = countedKey(plainRule, options);
    if (hasSecretKey(plainRule) && keySecret().keySecret === undefined && options.key?.some((text) => digest.test(text)) !== true) {
      io.err("floodgate: FLOODGATE_KEY_SECRET is not set, so the key's plain digest is looked up. Set it if the app has a `keySecret`.\n");
    }
    await use({ rule, key, keyText: limiter.keyText(key), store, limiter });
  });
}

const ifInCode = "If the limit is defined in code, say its policy: --policy 'fixed-window 5/15m'.";

async function rulesOf(io: Io, options: TargetOptions, redis: RulesRedis): Promise<RuleSet> {
  const found = await findRules(io, options, redis);
  if (found === undefined) throw new Failure("refused", `${noRules(options.rulesKey).message} ${ifInCode}`);
  return found.set;
}

/** A limit that is defined in code, as a rule. Its key has the parts that are given; without any it is "global". */
function limitInCode({ rule: name, key: texts = [], ip }: TargetOptions, policyText: string): RuleSet {
  const policy = parsePolicy(policyText) as unknown as NonNullable<PlainRule["policy"]>;
  const parts = [...(ip === undefined ? [] : ["ip"]), ...texts.map((_, i) => `part ${i + 1}`)];
  const [first = "global"] = parts;
  return { rules: [{ name, key: parts.length > 1 ? parts : first, policy }] };
}

/** The digest of a secret key, as events show it. */
const digest = /^secret:[\da-f]{64}$/;

function noSuchRule(name: string, { rules }: RuleSet): Failure {
  const known = rules.map((rule) => rule.name);
  const list = `${known.slice(0, 20).join(", ")}${known.length > 20 ? ", ..." : ""}`;
  return new Failure("usage", `there is no rule ${JSON.stringify(name)}.${didYouMean(name, known)} The rules are ${list}. ${ifInCode}`);
}
