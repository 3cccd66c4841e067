import type { Decision } from "../decision.js";
import type { EventListener } from "../events.js";
import { giveBack, settle } from "../refund.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { andThen, isPromise, type Store } from "../store.js";

/** Who asks, and whom it tells. */
export interface Asking {
  readonly guard: Store;
  readonly onEvent: EventListener | undefined;
}

/** Does what nobody waits for: a fault of it, now or later, can be told only to who listens. */
export function unheard(work: () => unknown, fault: (error: unknown) => void): void {
  try {
    const done = work();
    if (isPromise(done)) done.then(undefined, fault);
  } catch (error) {
    fault(error);
  }
}

/** What is to be done once the response has been sent, of which the status is known then; undefined where nothing is. */
export function afterwards<Req>(
  request: Req,
  checks: readonly RuleCheck<Req>[],
  all: readonly Decision[],
  refundWhen: ((status: number) => boolean) | undefined,
  { guard, onEvent }: Asking,
): ((status: number) => void) | undefined {
  if (refundWhen === undefined && !checks.some(({ rule }) => rule.settle !== undefined)) return undefined;
  const refundFailed = (error: unknown): void => onEvent?.({ type: "refund-failed", error });
  const settleFailed = (error: unknown): void => onEvent?.({ type: "settle-failed", error });
  return (status) => {
    unheard(() => {
      if (refundWhen?.(status) === true) {
        checks.forEach(({ limit, key }, i) => {
          unheard(() => giveBack(guard, limit, key, all[i] as Decision, onEvent), refundFailed);
        });
        return;
      }
      checks.forEach(({ rule, limit, key }, i) => {
        const decision = all[i] as Decision;
        if (rule.settle === undefined || !decision.allowed) return;
        const cost = (): unknown => rule.settle?.(request, { status });
        unheard(
          () =>
            andThen(cost(), (units) => (units === undefined ? undefined : settle(guard, limit, key, decision, units as number, onEvent))),
          settleFailed,
        );
      });
    }, refundFailed);
  };
}
