import { hasSlots } from "../algorithms/registry.js";
import type { Decision } from "../decide/decision.js";
import { activeListener } from "../events/listeners.js";
import type { StoreClient } from "../limits/limiter.js";
import { checkCost, emitChange, settleDecision } from "../limits/settle.js";
import { keepSlot } from "../limits/slots.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import type { RefundWhen } from "../rules/cost.js";
import { reasonOf, shown } from "../support/errors.js";
import { yesOrNo } from "../support/options.js";
import { andThen, attempt, isPromise, type Promised, runInBackground } from "../support/promises.js";
import { inThisContext } from "../support/runtime.js";
import { warnOnce } from "../support/warn.js";

/**
 * Refunds or settles a request after its response, by the response's status. Returns a promise if that is asynchronous. Await it only where
 * runtimes kill unawaited work.
 */
export type Afterwards = (status: number) => Promise<unknown> | undefined;

/** What is left to do for a request that may be refunded or settled. */
export function afterwards<Req>(
  request: Req,
  checks: readonly RuleCheck<Req>[],
  all: readonly Decision[],
  client: StoreClient,
): Afterwards {
  for (const decision of all) keepSlot(decision, client.onEvent);
  const settleOnce = onceEach();
  return inThisContext((status) => {
    const judgeOnce = onceEach();
    const changes = checks.map((check, i) => {
      const decision = all[i] as Decision;
      const { refundWhen, settle } = check.rule;
      if (hasSlots(check.limit.policy)) return settleOrRefund(check, decision, client);
      const isRefund = refundWhen !== undefined && judgeOnce(refundWhen, () => isRefunded(status, refundWhen, client));
      const realCost = (): Promised<number | undefined> => settle && settleOnce(settle, () => settle(request, { status }));
      return andThen<boolean, unknown>(isRefund, (refunds) => {
        if (refunds) return settleOrRefund(check, decision, client);
        return decision.allowed ? settleOrRefund(check, decision, client, realCost) : undefined;
      });
    });
    return changes.some(isPromise) ? Promise.all(changes) : undefined;
  });
}

function isRefunded(status: number, refundWhen: RefundWhen, client: StoreClient): Promised<boolean> {
  const fault = (error: unknown): boolean => {
    reportFailure("refund-failed", undefined, client, error);
    return false;
  };
  const refunds = (answer: unknown): boolean => yesOrNo("rateLimit", "refundWhen", answer, "(status) => status < 400");
  return attempt(() => andThen<unknown, boolean>(refundWhen(status), refunds), fault);
}

/** Runs each function of the app once, even if several rules use it. */
function onceEach(): <T>(of: unknown, run: () => T) => T {
  const answers = new Map<unknown, unknown>();
  return <T>(of: unknown, run: () => T): T => {
    if (!answers.has(of)) answers.set(of, run());
    return answers.get(of) as T;
  };
}

/** Settles a request to its real cost, if its rule has `settle`. Without `realCost`, gives back what it was charged. */
function settleOrRefund<Req>(
  check: RuleCheck<Req>,
  decision: Decision,
  client: StoreClient,
  realCost?: () => Promised<number | undefined>,
): PromiseLike<unknown> | undefined {
  const { limit, key } = check;
  const settle = (cost: number | undefined): Promised<number> => {
    const settled = settleDecision(client.guard, limit, key, decision, cost ?? 0);
    // A slot that ends is not a refund, so it emits no event.
    return hasSlots(limit.policy) ? settled : emitChange(settled, { name: limit.name, key, decision }, cost, client.onEvent);
  };
  const settleReal = (answer: unknown): unknown => {
    // Units that are held would come back.
    if (answer === undefined && decision.heldUntilMs === undefined) return undefined;
    return settle(answer === undefined ? decision.cost : checkCost(answer, 0));
  };
  return runInBackground(
    () => (realCost === undefined ? settle(undefined) : andThen<unknown, unknown>(realCost(), settleReal)),
    (error) => reportFailure(realCost === undefined ? "refund-failed" : "settle-failed", check, client, error),
  );
}

/** Reports a failure after the response, by event or on the console. */
function reportFailure<Req>(
  type: "refund-failed" | "settle-failed",
  check: RuleCheck<Req> | undefined,
  { onEvent }: StoreClient,
  error: unknown,
): void {
  const whose = check === undefined ? {} : { name: check.limit.name, key: check.key };
  activeListener(onEvent)?.({ type, ...whose, error });
  if (onEvent !== undefined) return;
  const { code, why } = reasonOf(error);
  const rule = check === undefined ? "" : ` under ${shown(check.limit.name)}`;
  warnOnce(
    code ?? type,
    `a request${rule} could not be ${type === "refund-failed" ? "refunded" : "settled"}: ${why} Set \`onEvent\` to get an event each time.`,
  );
}
