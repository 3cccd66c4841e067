import { blockedDecision, isBlocked } from "../decide/blocks.js";
import type { Decision } from "../decide/decision.js";
import type { Blocked } from "../decide/store.js";
import { isZero } from "../decide/zero-limits.js";
import { heard } from "../events/listeners.js";
import { msUntil } from "../failure/deadlines.js";
import type { StoreClient } from "../limits/store-client.js";
import type { Ban } from "../rules/ban.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { andThen, isPromise, type Promised, runInBackground } from "../support/promises.js";

/**
 * Counts the rejections of rules with a ban, except rejections by a ban or a block. Only a rejection that may begin a ban waits for the
 * store, until `deadlineMs` of the running clock.
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

/** Counts a rejection towards a ban. Returns the decision that the client gets. */
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
  const afterStrike = (blocked: Blocked | undefined): Decision => {
    if (blocked === undefined) return decision;
    if (blocked.begun) {
      heard(onEvent)?.({ type: "banned", name, key, forMs: ban.forMs, shadow });
      inBackground(client, () => ban.forgive(guard, key));
    }
    return blockedDecision(decision, blocked.leftMs);
  };
  const fault = (error: unknown): Decision => {
    heard(onEvent)?.({ type: "store-error", error });
    return decision;
  };
  let counted: Promised<Decision>;
  try {
    counted = andThen<Blocked | undefined, Decision>(ban.strike(guard, key), afterStrike);
  } catch (error) {
    return fault(error);
  }
  if (!isPromise(counted)) return counted;
  const settled = counted.then(undefined, fault);
  return waits ? guard.atMost(msUntil(deadlineMs), settled).then(undefined, () => decision) : decision;
}

/** Runs work that the request does not wait for. */
function inBackground({ onEvent }: StoreClient, work: () => unknown): void {
  runInBackground(work, (error) => heard(onEvent)?.({ type: "store-error", error }));
}
