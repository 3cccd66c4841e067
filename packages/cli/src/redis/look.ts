import { fixedWindow, type Store } from "@floodgate/core";
import { getOrMake } from "@floodgate/core/adapter";
import type { CompiledRule } from "@floodgate/core/rules";
import { createLimit } from "@floodgate/core/store";
import type { StoredKey } from "@floodgate/store-redis";
import type { Cluster, Redis } from "ioredis";
import type { CliRequest } from "../app.js";
import type { Io } from "../io.js";
import { compileRules, findRules, type RulesOptions, storeOf, timeoutMs } from "../rules/rules-in-force.js";
import { countingPlans, type KeyState, readKeyState, undefinedIfForeign, type Verdict, verdictOf } from "./key-state.js";
import { limitName, storedKeys } from "./stored-keys.js";

export interface LookOptions extends RulesOptions {
  readonly ipv6Prefix: number;
  /** The most keys in Redis to look at. */
  readonly sample: number;
  /** Looks only at keys for which it returns true. */
  readonly isWanted?: (key: string) => boolean;
}

/** What `top` saw at one moment. */
export interface Look {
  /** By this machine's clock, in milliseconds since the epoch. */
  readonly atMs: number;
  readonly limits: readonly LimitSummary[];
  /** The keys that have used something, the most limited first. */
  readonly keys: readonly SeenKey[];
  /** Whether there are keys in Redis that were not looked at. */
  readonly more: boolean;
}

export interface LimitSummary {
  readonly name: string;
  /** Whether no rule has this name. Then an app defines the limit in its code, and only its blocks are known. */
  readonly inCode: boolean;
  readonly keys: number;
  readonly limited: number;
  readonly blocked: number;
}

export interface SeenKey {
  readonly name: string;
  readonly inCode: boolean;
  readonly key: string;
  /** `unknown`: of a limit in code, whose policy is not known; or the key holds a foreign value. */
  readonly state: Verdict | "unknown";
  /** Of a limit in code: the kind of its counts, if Redis has one. */
  readonly stateKind?: string | undefined;
  /** Under the rule's own policy. Undefined for a limit in code. */
  readonly count: { readonly used: number; readonly limit: number } | undefined;
  /** The block or ban, if the key has one. */
  readonly blocked?: KeyState["blocked"];
  /** The rejections that count towards a ban, if the rule bans. */
  readonly ban?: { readonly rejections: number; readonly of: number; readonly withinMs: number } | undefined;
  /** The plan that the key has for a time, and until when. */
  readonly grant?: { readonly plan: string; readonly untilMs: number } | undefined;
  /** The rule's plans. */
  readonly plans?: readonly string[] | undefined;
  /** The wait until the next request of cost 1 passes, under the plan that has to wait longest. 0 if it is not known. */
  readonly retryAfterMs: number;
}

/** Looks at the keys in Redis once. Each look reads the rules, because they may change. */
export async function lookAt(io: Io, redis: Redis | Cluster, options: LookOptions): Promise<Look> {
  const loaded = await findRules(io, options, redis);
  const all = loaded === undefined ? [] : compileRules(loaded.set, options);
  const store = storeOf(redis, options);
  const rules = new Map(all.map((rule) => [rule.name, rule]));
  const { keys: stored, more } = await storedKeys(redis, options.prefix, options.sample, options);
  const counted = new Map<string, Pick<StoredKey, "name" | "key"> & { stateKind?: string | undefined }>();
  for (const { name: storedName, key, stateKind } of stored) {
    const name = limitName(storedName);
    const id = `${name}\n${key}`;
    counted.set(id, { name, key, stateKind: (name === storedName ? stateKind : undefined) ?? counted.get(id)?.stateKind });
  }
  const seen = await Promise.all(
    [...counted.values()].map(async ({ name, key, stateKind }) => {
      const rule = rules.get(name);
      return rule === undefined ? { ...(await lookAtLimitInCode(store, name, key)), stateKind } : lookAtRule(store, rule, key);
    }),
  );
  return { atMs: Date.now(), limits: summaries(rules, seen), keys: seen.sort(bySeverity), more };
}

/** The rules first, also those without keys; then the limits in code. */
function summaries(rules: ReadonlyMap<string, unknown>, seen: readonly SeenKey[]): LimitSummary[] {
  const byName = new Map([...rules.keys()].map((name): [string, SeenKey[]] => [name, []]));
  for (const key of seen) getOrMake(byName, key.name, () => []).push(key);
  return [...byName].map(([name, keys]) => {
    const count = (state: SeenKey["state"]): number => keys.filter((key) => key.state === state).length;
    return { name, inCode: !rules.has(name), keys: keys.length, limited: count("limited"), blocked: count("blocked") };
  });
}

async function lookAtRule(store: Store, rule: CompiledRule<CliRequest>, key: string): Promise<SeenKey> {
  // A foreign value under one key must not hide the others.
  const state = await readKeyState({ rule, store, keyText: key }, undefined).catch(undefinedIfForeign);
  if (state === undefined) return { name: rule.name, inCode: false, key, state: "unknown", count: undefined, retryAfterMs: 0 };
  const { blocked, ban, grant } = state;
  const common = {
    name: rule.name,
    inCode: false,
    key,
    blocked,
    ban: ban && { rejections: ban.rejections, of: ban.ban.rejections.policy.quota, withinMs: ban.ban.rejections.policy.spanMs },
    grant: grant && { plan: grant.plan, untilMs: grant.untilMs },
    plans: rule.plans && [...rule.plans.keys()],
  };
  const plans = countingPlans(state);
  const waits = plans.map(({ decision }) => decision.retryAfterMs);
  const [own] = plans;
  const count = own && { used: own.used, limit: own.decision.limit };
  const retryAfterMs = rule.shadow ? 0 : Math.max(blocked?.leftMs ?? 0, ...waits);
  return { ...common, state: verdictOf(rule, state), count, retryAfterMs };
}

async function lookAtLimitInCode(store: Store, name: string, key: string): Promise<SeenKey> {
  const decision = await Promise.resolve(store.peek(createLimit(name, anyPolicy), key, timeoutMs)).catch(undefinedIfForeign);
  const base = { name, inCode: true, key, count: undefined };
  if (decision?.blocked === undefined) return { ...base, state: "unknown", retryAfterMs: 0 };
  const leftMs = decision.retryAfterMs;
  return { ...base, state: "blocked", blocked: { kind: decision.blocked.kind, leftMs }, retryAfterMs: leftMs };
}

/** The policy of a limit in code is not known here. Its blocks are the same under every policy. */
const anyPolicy = fixedWindow({ limit: 1, window: "1m" });

const severity: Readonly<Record<SeenKey["state"], number>> = {
  blocked: 5,
  limited: 4,
  "some plans": 3,
  unknown: 2,
  "would be limited": 1,
  open: 0,
};

function bySeverity(one: SeenKey, other: SeenKey): number {
  const share = ({ count }: SeenKey): number => (count === undefined ? 0 : count.used / count.limit);
  return (
    severity[other.state] - severity[one.state] ||
    share(other) - share(one) ||
    other.retryAfterMs - one.retryAfterMs ||
    (one.key < other.key ? -1 : 1)
  );
}
