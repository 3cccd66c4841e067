import type { Decision } from "../limits/decision.js";
import { giveBack } from "../limits/settle.js";
import type { Ban, Strike } from "../rules/ban.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { msUntil } from "../stores/deadlines.js";
import { StoreGuard } from "../stores/guard.js";
import type { Check } from "../stores/store.js";
import type { Promised } from "../support/promises.js";
import { andThen, isPromise } from "../support/promises.js";
import { type Asking, unheard } from "./asking.js";

/** The checks as the store is asked for them: each whose rule bans is followed by a look at the ban. */
export function withBans<Req>(checks: readonly RuleCheck<Req>[]): readonly Check[] {
  if (checks.every(({ rule }) => rule.ban === undefined)) return checks;
  return checks.flatMap((check): Check[] => {
    const { ban } = check.rule;
    if (ban === undefined) return [check];
    return [check, { limit: ban.banned, key: check.key, cost: 1, shadow: check.shadow === true, look: true }];
  });
}

/**
 * The decisions of the checks, each with its ban heeded; a rejection that no ban has said is counted towards one. Only one that may
 * begin a ban waits for that, and until `deadlineMs` at most.
 */
export function heedBans<Req>(
  checks: readonly RuleCheck<Req>[],
  answers: readonly Decision[],
  asking: Asking,
  deadlineMs: number,
): Promised<readonly Decision[]> {
  if (answers.length === checks.length) return answers;
  let next = 0;
  const asked = checks.map((check) => ({
    check,
    decision: answers[next++] as Decision,
    look: check.rule.ban === undefined ? undefined : (answers[next++] as Decision),
  }));
  const charged = asked.every(({ check, decision, look }) => check.shadow === true || (decision.allowed && look?.allowed !== false));
  const heeded = asked.map(({ check, decision, look }): Promised<Decision> => {
    const { ban } = check.rule;
    if (ban === undefined || look === undefined) return decision;
    // Without its store nobody can say that the client is to blame.
    if (!decision.allowed && look.allowed && !decision.degraded) return strike(check, ban, decision, asking, deadlineMs);
    // A ban that is only watched did not prevent this charge, as it would if it was enforced.
    if (charged && !look.allowed) meanwhile(asking, () => giveBack(asking.guard, check.limit, check.key, decision, undefined));
    return ban.apply(decision, look);
  });
  return heeded.some(isPromise) ? Promise.all(heeded) : (heeded as Decision[]);
}

/** Counts a rejection towards a ban. Answers the decision as the client is told it. */
function strike<Req>(
  { rule: { name, shadow }, key }: RuleCheck<Req>,
  ban: Ban,
  decision: Decision,
  asking: Asking,
  deadlineMs: number,
): Promised<Decision> {
  const { guard, onEvent } = asking;
  // In shadow mode the client never sees the rejection, so it need not wait for the ban.
  const waits = !shadow && ban.mayBegin(key);
  const told = (struck: Strike | undefined): Decision => {
    if (struck === undefined) return decision;
    if (struck.begun) {
      onEvent?.({ type: "banned", name, key, forMs: ban.forMs, shadow });
      meanwhile(asking, () => ban.forgive(guard, key));
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
  return waits && guard instanceof StoreGuard ? guard.atMost(msUntil(deadlineMs), heard).then(undefined, () => decision) : decision;
}

/** Nobody waits for it: the request has its answer. */
function meanwhile({ onEvent }: Asking, work: () => unknown): void {
  unheard(work, (error) => onEvent?.({ type: "store-error", error }));
}
