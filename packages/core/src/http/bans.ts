import type { Decision } from "../decision.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { andThen, type Check } from "../store.js";
import { type Asking, tellQuietly, unheard } from "./asking.js";

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
  return checks.map((check) => {
    const decision = answers[next++] as Decision;
    const { ban } = check.rule;
    if (ban === undefined) return decision;
    const look = answers[next++] as Decision;
    // Without its store nobody can say that the client is to blame.
    if (!decision.allowed && look.allowed && !decision.degraded) strike(check, asking);
    return ban.apply(decision, look);
  });
}

/** Nobody waits for it: the request has its answer. */
function strike<Req>({ rule: { name, ban, shadow }, key }: RuleCheck<Req>, { guard, onEvent }: Asking): void {
  if (ban === undefined) return;
  const { forMs } = ban;
  unheard(
    () =>
      andThen<boolean, void>(ban.strike(guard, key), (begun) => {
        if (begun) tellQuietly(onEvent, { type: "banned", name, key, forMs, shadow });
      }),
    (error) => tellQuietly(onEvent, { type: "store-error", error }),
  );
}
