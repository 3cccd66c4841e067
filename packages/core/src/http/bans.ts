import type { Decision } from "../decision.js";
import type { Ban } from "../rules/ban.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { giveBack } from "../settle.js";
import { andThen, type Check } from "../store.js";
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

/** The decisions of the checks, each with its ban heeded; a rejection that no ban has said is counted towards one. */
export function heedBans<Req>(checks: readonly RuleCheck<Req>[], answers: readonly Decision[], asking: Asking): readonly Decision[] {
  if (answers.length === checks.length) return answers;
  let next = 0;
  const asked = checks.map((check) => ({
    check,
    decision: answers[next++] as Decision,
    look: check.rule.ban === undefined ? undefined : (answers[next++] as Decision),
  }));
  const charged = asked.every(({ check, decision, look }) => check.shadow === true || (decision.allowed && look?.allowed !== false));
  return asked.map(({ check, decision, look }) => {
    const { ban } = check.rule;
    if (ban === undefined || look === undefined) return decision;
    // Without its store nobody can say that the client is to blame.
    if (!decision.allowed && look.allowed && !decision.degraded) strike(check, ban, asking);
    // A ban that is only watched did not prevent this charge, as it would if it was enforced.
    if (charged && !look.allowed) meanwhile(asking, () => giveBack(asking.guard, check.limit, check.key, decision, undefined));
    return ban.apply(decision, look);
  });
}

function strike<Req>({ rule: { name, shadow }, key }: RuleCheck<Req>, ban: Ban, asking: Asking): void {
  const { guard, onEvent } = asking;
  const { forMs } = ban;
  meanwhile(asking, () =>
    andThen<boolean, void>(ban.strike(guard, key), (begun) => {
      if (begun) onEvent?.({ type: "banned", name, key, forMs, shadow });
    }),
  );
}

/** Nobody waits for it: the request has its answer. */
function meanwhile({ onEvent }: Asking, work: () => unknown): void {
  unheard(work, (error) => onEvent?.({ type: "store-error", error }));
}
