import type { Ban, CompiledRule } from "@floodgate/core/rules";
import type { Decision, Limit } from "@floodgate/core/store";
import type { AskedRequest } from "./app.js";
import { type Subject, timeoutMs } from "./subject.js";

/** What a rule knows of a key. */
export interface KeyState {
  /** When this was looked at, in milliseconds since the epoch by this machine's clock. */
  readonly atMs: number;
  readonly plans: readonly PlanState[];
  readonly ban: BanState | undefined;
}

/** What it has used under one plan. */
export interface PlanState {
  /** Undefined for those that the rule does not name. */
  readonly plan: string | undefined;
  readonly used: number;
  /** What a request of cost 1 would be told, the ban included. */
  readonly decision: Decision;
}

export interface BanState {
  readonly ban: Ban;
  /** 0 where the key is not banned. */
  readonly leftMs: number;
  /** The rejections that have been counted towards a ban. */
  readonly rejections: number;
}

/** @param plan whose numbers are asked for; default: all. */
export async function lookAt({ rule, store, keyText }: Subject, plan: string | undefined): Promise<KeyState> {
  const look = async (limit: Limit): Promise<Decision> => store.peek(limit, keyText, timeoutMs);
  const { ban } = rule;
  const banned = ban && { ban, banned: await look(ban.banned), counted: await look(ban.rejections) };
  const plans = limitsOf(rule, plan).map(async ([name, limit]): Promise<PlanState> => {
    const decision = await look(limit);
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

function limitsOf({ fixed, plans = new Map() }: CompiledRule<AskedRequest>, plan: string | undefined): [string | undefined, Limit][] {
  // Rules in a file have a policy of their own.
  const own: [undefined, Limit] = [undefined, fixed as Limit];
  if (plan === undefined) return [own, ...plans];
  const planned = plans.get(plan);
  return [planned === undefined ? own : [plan, planned]];
}
