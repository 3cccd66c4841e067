import { FloodgateError } from "@floodgate/core";
import { type Ban, type CompiledRule, type Granted, usedOf } from "@floodgate/core/rules";
import { type BlockKind, blockOf, type Decision, type Limit, type Store } from "@floodgate/core/store";
import type { CliRequest } from "../app.js";
import { timeoutMs } from "../rules/rules-in-force.js";

/** A key that a rule counts, as text, and where. */
interface CountedKey {
  readonly rule: CompiledRule<CliRequest>;
  /** The key as events show it, with a digest instead of a secret. */
  readonly keyText: string;
  readonly store: Store;
}

/** The counts and the ban of a key. */
export interface KeyState {
  /** When this was read, in milliseconds since the epoch by this machine's clock. */
  readonly atMs: number;
  readonly plans: readonly PlanState[];
  /** The block or the ban of the key, whichever lasts longer, and the time left. */
  readonly blocked: { readonly kind: BlockKind; readonly leftMs: number } | undefined;
  /** The ban of the rule, if it has one, and how many rejections count towards it. */
  readonly ban: { readonly ban: Ban; readonly rejections: number } | undefined;
  /** The plan that the key has for a time. */
  readonly grant: Granted | undefined;
}

/** The counts that the next request may meet: that of the granted plan, else of any plan. */
export function countingPlans({ plans, grant }: KeyState): readonly PlanState[] {
  return grant === undefined ? plans : plans.filter(({ plan }) => plan === grant.plan);
}

/** `limited`: the next request is rejected, under every plan. `some plans`: only under some. A rule in shadow mode rejects nobody. */
export type Verdict = "blocked" | "limited" | "some plans" | "would be limited" | "open";

export function verdictOf({ shadow }: { readonly shadow: boolean }, state: KeyState): Verdict {
  const plans = countingPlans(state);
  const limited = plans.filter(({ decision }) => !decision.allowed).length;
  if (state.blocked === undefined && limited === 0) return "open";
  if (shadow) return "would be limited";
  if (state.blocked !== undefined) return "blocked";
  return limited === plans.length ? "limited" : "some plans";
}

/** The count of a key as one plan sees it. */
export interface PlanState {
  /** Undefined for plans that the rule does not list. */
  readonly plan: string | undefined;
  readonly used: number;
  /** The decision for a request of cost 1, including a ban or block. */
  readonly decision: Decision;
}

/**
 * Reads the state of a key without changing it.
 * @param plan the only plan to read; undefined reads all.
 */
export async function readKeyState({ rule, store, keyText }: CountedKey, plan: string | undefined): Promise<KeyState> {
  const peek = async (limit: Limit): Promise<Decision> => store.peek(limit, keyText, timeoutMs);
  const { ban } = rule;
  const rejections = ban && (await peek(ban.rejections));
  let blocked: KeyState["blocked"];
  const plans = limitsOf(rule, plan).map(async ([name, limit]): Promise<PlanState> => {
    const decision = await peek(limit);
    const block = blockOf(decision);
    if (block !== undefined && decision.blocked !== undefined)
      blocked = { kind: decision.blocked.kind, leftMs: decision.blocked.untilMs - block.nowMs };
    return { plan: name, used: usedOf(decision), decision };
  });
  const states = await Promise.all(plans);
  return {
    atMs: Date.now(),
    plans: states,
    blocked,
    grant: rule.grantOf(keyText),
    ban: ban && rejections && { ban, rejections: usedOf(rejections) },
  };
}

function limitsOf({ fixed, plans = new Map() }: CompiledRule<CliRequest>, plan: string | undefined): [string | undefined, Limit][] {
  // Rules in a file never have a policy function, so `fixed` is set.
  const ownLimit: [undefined, Limit] = [undefined, fixed as Limit];
  if (plan === undefined) return [ownLimit, ...plans];
  const limit = plans.get(plan);
  return [limit === undefined ? ownLimit : [plan, limit]];
}

/** For the `catch` of a read: undefined if the key holds a value that Floodgate did not write. Throws any other error. */
export function undefinedIfForeign(error: unknown): undefined {
  if (!(error instanceof FloodgateError) || error.code !== "FLOODGATE_FOREIGN_VALUE") throw error;
}
