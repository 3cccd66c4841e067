import type { Ban, CompiledRule } from "@floodgate/core/rules";
import type { Decision, Limit } from "@floodgate/core/store";
import type { CliRequest } from "./app.js";
import { type Target, timeoutMs } from "./target.js";

/** The counts and the ban of a key. */
export interface KeyState {
  /** When this was read, in milliseconds since the epoch by this machine's clock. */
  readonly atMs: number;
  readonly plans: readonly PlanState[];
  readonly ban: BanState | undefined;
}

/** The count of a key as one plan sees it. */
export interface PlanState {
  /** Undefined for plans that the rule does not list. */
  readonly plan: string | undefined;
  readonly used: number;
  /** The decision for a request of cost 1, including the ban. */
  readonly decision: Decision;
}

export interface BanState {
  readonly ban: Ban;
  /** 0 if the key is not banned. */
  readonly leftMs: number;
  /** How many rejections count towards a ban. */
  readonly rejections: number;
}

/**
 * Reads the state of a key without changing it.
 * @param plan the only plan to read; undefined reads all.
 */
export async function readKeyState({ rule, store, keyText }: Target, plan: string | undefined): Promise<KeyState> {
  const peek = async (limit: Limit): Promise<Decision> => store.peek(limit, keyText, timeoutMs);
  const { ban } = rule;
  const banned = ban && { ban, banned: await peek(ban.banned), counted: await peek(ban.rejections) };
  const plans = limitsOf(rule, plan).map(async ([name, limit]): Promise<PlanState> => {
    const decision = await peek(limit);
    return {
      plan: name,
      used: decision.limit - decision.remaining,
      decision: banned ? banned.ban.apply(decision, banned.banned) : decision,
    };
  });
  return {
    atMs: Date.now(),
    plans: await Promise.all(plans),
    ban: banned && { ban: banned.ban, leftMs: banned.banned.retryAfterMs, rejections: banned.counted.limit - banned.counted.remaining },
  };
}

function limitsOf({ fixed, plans = new Map() }: CompiledRule<CliRequest>, plan: string | undefined): [string | undefined, Limit][] {
  // Rules in a file never have a policy function, so `fixed` is set.
  const ownLimit: [undefined, Limit] = [undefined, fixed as Limit];
  if (plan === undefined) return [ownLimit, ...plans];
  const limit = plans.get(plan);
  return [limit === undefined ? ownLimit : [plan, limit]];
}
