import { type Blocked, blockedDecision, isBlocked } from "../limits/blocks.js";
import type { Decision } from "../limits/decision.js";
import type { StoreClient } from "../limits/store-client.js";
import type { Ban } from "../rules/ban.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { msUntil } from "../stores/deadlines.js";
import { isZero } from "../stores/zero-limit.js";
import { andThen, isPromise, type Promised, runInBackground } from "../support/promises.js";

/**
 * Counts each rejection under a rule with a ban towards it, except rejections by a ban or a block. Only a rejection that may begin a ban
 * waits for that, until `deadlineMs` of the running clock.
 */
export function countTowardsBans<Req>(
  checks: readonly RuleCheck<Req>[],
  decisions: readonly Decision[],
  client: StoreClient,
  deadlineMs: number,
): Promised<readonly Decision[]> {
  let counted: Promised<Decision>[] | undefined;
  let waits = false;
  for (let i = 0; i < checks.length; i++) {
    const check = checks[i] as RuleCheck<Req>;
    const decision = decisions[i] as Decision;
    const { ban } = check.rule;
    // A limit of 0 rejects everybody, so it bans nobody. A degraded rejection does not show that the client is to blame.
    if (ban === undefined || decision.allowed || decision.degraded || isZero(check) || isBlocked(decision)) continue;
    counted ??= [...decisions];
    counted[i] = strike(check, ban, decision, client, deadlineMs);
    waits ||= isPromise(counted[i]);
  }
  if (counted === undefined) return decisions;
  return waits ? Promise.all(counted) : (counted as Decision[]);
}

/** Counts a rejection towards a ban. Answers the decision that the client gets. */
function strike<Req>(
  { rule: { name, shadow }, key }: RuleCheck<Req>,
  ban: Ban,
  decision: Decision,
  client: StoreClient,
  deadlineMs: number,
): Promised<Decision> {
  const { guard, onEvent } = client;
  // In shadow mode the client never sees the rejection, so it need not wait for the ban.
  const waits = !shadow && ban.mayBegin(key);
  const told = (struck: Blocked | undefined): Decision => {
    if (struck === undefined) return decision;
    if (struck.begun) {
      onEvent?.({ type: "banned", name, key, forMs: ban.forMs, shadow });
      inBackground(client, () => ban.forgive(guard, key));
    }
    return blockedDecision(decision, struck.leftMs);
  };
  const fault = (error: unknown): Decision => {
    onEvent?.({ type: "store-error", error });
    return decision;
  };
  let struck: Promised<Decision>;
  try {
    struck = andThen<Blocked | undefined, Decision>(ban.strike(guard, key), told);
  } catch (error) {
    return fault(error);
  }
  if (!isPromise(struck)) return struck;
  const heard = struck.then(undefined, fault);
  return waits ? guard.atMost(msUntil(deadlineMs), heard).then(undefined, () => decision) : decision;
}

/** The request has its answer, so it does not wait. */
function inBackground({ onEvent }: StoreClient, work: () => unknown): void {
  runInBackground(work, (error) => onEvent?.({ type: "store-error", error }));
}
