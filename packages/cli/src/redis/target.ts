import type { Limiter, LimiterKey, Store } from "@floodgate/core";
import { RateLimit } from "@floodgate/core/adapter";
import type { CompiledRule, PlainRule, RuleSet } from "@floodgate/core/rules";
import { parsePolicy } from "@floodgate/simulator";
import type { Command } from "commander";
import type { Cluster, Redis } from "ioredis";
import { appOptions, type CliRequest, cliReader, keySecret, noteUnknownPlan } from "../app.js";
import { Failure } from "../failure.js";
import type { Io } from "../io.js";
import { countedKey, hasSecretKey, type KeyOptions } from "../keys.js";
import { collect, ipv6PrefixOption, requiredOption } from "../options.js";
import { didYouMean } from "../output/format.js";
import { kindText, policyAdvice } from "../output/state-kind.js";
import {
  compileRules,
  fileRulesOf,
  findRules,
  noRules,
  type RulesOptions,
  rulesOptions,
  storeOf,
  timeoutMs,
} from "../rules/rules-in-force.js";
import { withRedis } from "./connection.js";
import { readKeyState, undefinedIfForeign } from "./key-state.js";
import { storedKeys } from "./stored-keys.js";

/** The options of `status` and `reset`. */
export interface TargetOptions extends RulesOptions, KeyOptions {
  readonly rule: string;
  /** The policy of a limit that is defined in code. */
  readonly policy?: string;
  readonly plan?: string;
}

export function targetOptions(command: Command, plan = "show only this plan; default: all plans of the rule"): Command {
  requiredOption(command, "--rule <name>", "the name of the rule, or of a limit that is defined in code")
    .option("--key <value>", "the key that the rule counts: a user, an address, an API key or its digest (repeat for each part)", collect)
    .option("--ip <address>", "the client address, for a rule that counts by it or whose key is missing")
    .option("--policy <policy>", "for a limit that is defined in code: its policy, such as 'fixed-window 5/15m' or '100/1m'");
  rulesOptions(command).option("--plan <name>", plan);
  return ipv6PrefixOption(command).option("--json", "print JSON");
}

/** The rule and key that a command acts on. */
export interface RuleAndKey {
  readonly rule: CompiledRule<CliRequest>;
  /** The rule as it is written. */
  readonly plainRule: PlainRule;
  readonly key: LimiterKey;
  /** The key as events show it, with a digest instead of a secret. */
  readonly keyText: string;
}

/** The rule and key that `status` and `reset` act on, and their counts in Redis. */
export interface Target extends RuleAndKey {
  readonly store: Store;
  readonly limiter: Limiter;
}

/**
 * Finds the target in Redis and calls `use` with it.
 * @throws Failure if Redis does not answer, or the rules, the rule or the key are invalid.
 */
export function withTarget(io: Io, options: TargetOptions, use: (target: Target, redis: Redis | Cluster) => Promise<void>): Promise<void> {
  return withRedis(options, async (redis) => {
    const set = options.policy === undefined ? await rulesOf(io, options, redis) : limitInCode(options, options.policy);
    const isKnown = set.rules.some(({ name }) => name === options.rule);
    const found = ruleAndKeyIn(io, options, set, isKnown ? "" : await ifInCode(redis, options));
    const store = storeOf(redis, options);
    // As the app's middleware binds the rules to their counts. Once for each client of Redis, because it takes the rules' names.
    const rules = { current: set, subscribe: () => () => undefined };
    const { version } = new RateLimit("floodgate", { ...appOptions(set, options), rules, store, timeoutMs }, [], cliReader, () => store);
    const limiter = version.limiters.get(options.rule) as Limiter;
    const target = { ...found, store, limiter };
    await refuseOtherPolicies(redis, options, target);
    await use(target, redis);
  });
}

/** Finds the rule and key in the rules of a file, without Redis. */
export async function ruleAndKeyInFile(io: Io, options: TargetOptions, file: string): Promise<RuleAndKey> {
  return ruleAndKeyIn(io, options, (await fileRulesOf(io, file, options)).set, "");
}

function ruleAndKeyIn(io: Io, options: TargetOptions, set: RuleSet, ifInCode: string): RuleAndKey {
  const plainRule = set.rules.find(({ name }) => name === options.rule);
  if (plainRule === undefined) throw noSuchRule(options.rule, set, ifInCode);
  const rule = compileRules(set, options).find(({ name }) => name === options.rule) as CompiledRule<CliRequest>;
  noteUnknownPlan(io, options.plan, [plainRule]);
  const key = countedKey(plainRule, options);
  if (hasSecretKey(plainRule) && keySecret().keySecret === undefined && options.key?.some((text) => digest.test(text)) !== true) {
    io.err("floodgate: FLOODGATE_KEY_SECRET is not set, so the key's plain digest is looked up. Set it if the app has a `keySecret`.\n");
  }
  return { rule, plainRule, key, keyText: rule.keyText(key) };
}

/** @throws Failure if Redis holds nothing of the key under this policy, but something under another: then the policy is probably wrong. */
async function refuseOtherPolicies(redis: Redis | Cluster, options: TargetOptions, target: Target): Promise<void> {
  const { rule, keyText } = target;
  const { policy } = options;
  const state = await readKeyState(target, undefined).catch(undefinedIfForeign);
  if (state === undefined || state.plans.some(({ used }) => used > 0)) return;
  const known = state.plans.map(({ decision }) => decision.policy.stateKind);
  const held = (await heldKinds(redis, options)).filter(({ key }) => key === keyText).map(({ kind }) => kind);
  if (held.length === 0 || held.some((kind) => known.includes(kind))) return;
  const given = policy === undefined ? `the policy of this rule (${known.map(kindText).join(", ")})` : `--policy ${JSON.stringify(policy)}`;
  throw new Failure(
    "refused",
    `Redis holds nothing of ${JSON.stringify(rule.name)} and key ${JSON.stringify(keyText)} under ${given}, but it holds a count of ${held.map(kindText).join(" and of ")}, which may still limit the key. Nothing was changed. Write the policy that the app has: ${policyAdvice(held)}.`,
  );
}

/** The kinds of the counts of a limit in Redis. Empty if the user of Redis may not look. */
async function heldKinds(redis: Redis | Cluster, { prefix, rule }: TargetOptions): Promise<{ key: string; kind: string }[]> {
  const { keys } = await storedKeys(redis, prefix, Number.POSITIVE_INFINITY, { name: rule }).catch(() => ({ keys: [] }));
  return keys.flatMap(({ key, name, stateKind }) => (name === rule && stateKind !== undefined ? [{ key, kind: stateKind }] : []));
}

/** What to write for a limit in code. Its counts in Redis tell the algorithm and the times of its policy. */
async function ifInCode(redis: Redis | Cluster, options: TargetOptions): Promise<string> {
  const held = await heldKinds(redis, options);
  const advice = held.length === 0 ? "--policy 'fixed-window 5/15m'" : policyAdvice(held.map(({ kind }) => kind));
  return ` If the limit is defined in code, say its policy: ${advice}.`;
}

async function rulesOf(io: Io, options: TargetOptions, redis: Redis | Cluster): Promise<RuleSet> {
  const found = await findRules(io, options, redis);
  if (found === undefined) throw new Failure("refused", `${noRules(options.rulesKey).message}${await ifInCode(redis, options)}`);
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

function noSuchRule(name: string, { rules }: RuleSet, ifInCode: string): Failure {
  const known = rules.map((rule) => rule.name);
  const list = `${known.slice(0, 20).join(", ")}${known.length > 20 ? ", ..." : ""}`;
  return new Failure("usage", `there is no rule ${JSON.stringify(name)}.${didYouMean(name, known)} The rules are ${list}.${ifInCode}`);
}
