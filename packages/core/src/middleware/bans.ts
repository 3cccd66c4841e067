import type { Decision } from "../limits/decision.js";
import { giveBack } from "../limits/settle.js";
import type { StoreClient } from "../limits/store-client.js";
import type { Ban, Strike } from "../rules/ban.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { msUntil } from "../stores/deadlines.js";
import type { Check } from "../stores/store.js";
import { isZero } from "../stores/zero-limit.js";
import { andThen, isPromise, type Promised, runInBackground } from "../support/promises.js";

/** The checks, followed by a look at the ban of each whose rule bans: the store decides all of them in one step. */
export function withLooks<Req>(checks: readonly RuleCheck<Req>[]): readonly Check[] {
  let asked: Check[] | undefined;
  for (const check of checks) {
    const { ban } = check.rule;
    // A limit of 0 rejects everybody, so it bans nobody.
    if (ban === undefined || isZero(check)) continue;
    asked ??= [...checks];
    asked.push({ limit: ban.banned, key: check.key, cost: 1, shadow: check.shadow === true, look: true });
  }
  return asked ?? checks;
}

/**
 * Applies the bans to the decisions of the checks, and counts each rejection that is not a ban's own towards a ban. Only a rejection that
 * may begin a ban waits for that, until `deadlineMs` of the running clock.
 * @param answers the decisions of `withLooks`.
 */
export function applyBans<Req>(
  checks: readonly RuleCheck<Req>[],
  answers: readonly Decision[],
  client: StoreClient,
  deadlineMs: number,
): Promised<readonly Decision[]> {
  if (answers.length === checks.length) return answers;
  const decisions: Promised<Decision>[] = answers.slice(0, checks.length);
  let next = checks.length;
  let waits = false;
  let isBanned = false;
  for (let i = 0; i < checks.length; i++) {
    const check = checks[i] as RuleCheck<Req>;
    const { ban } = check.rule;
    if (ban === undefined || isZero(check)) continue;
    const decision = answers[i] as Decision;
    const look = answers[next++] as Decision;
    if (!look.allowed) {
      isBanned = true;
      decisions[i] = ban.rejection(decision, look);
    } else if (!decision.allowed && !decision.degraded) {
      // A degraded rejection does not show that the client is to blame.
      decisions[i] = strike(check, ban, decision, client, deadlineMs);
      waits ||= isPromise(decisions[i]);
    }
  }
  if (isBanned) returnWatched(checks, answers, client);
  return waits ? Promise.all(decisions) : (decisions as Decision[]);
}

/** A ban that is only watched did not prevent the charge, as it would if it was enforced. */
function returnWatched<Req>(checks: readonly RuleCheck<Req>[], answers: readonly Decision[], client: StoreClient): void {
  const banned = new Set<RuleCheck<Req>>();
  let next = checks.length;
  for (const check of checks) {
    if (check.rule.ban !== undefined && !isZero(check) && answers[next++]?.allowed === false) banned.add(check);
  }
  const isCharged = checks.every((check, i) => check.shadow === true || (answers[i]?.allowed === true && !banned.has(check)));
  if (!isCharged) return;
  checks.forEach((check, i) => {
    if (!banned.has(check)) return;
    inBackground(client, () => giveBack(client.guard, check.limit, check.key, answers[i] as Decision, undefined));
  });
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
  const told = (struck: Strike | undefined): Decision => {
    if (struck === undefined) return decision;
    if (struck.begun) {
      onEvent?.({ type: "banned", name, key, forMs: ban.forMs, shadow });
      inBackground(client, () => ban.forgive(guard, key));
    }
    return ban.rejection(decision, struck.ban);
  };
  const fault = (error: unknown): Decision => {
    onEvent?.({ type: "store-error", error });
    return decision;
  };
  let struck: Promised<Decision>;
  try {
    struck = andThen<Strike | undefined, Decision>(ban.strike(guard, key), told);
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
