import { type ChargeRecord, chargeOf, hasCharge } from "../algorithms/decision.js";
import type { Policy } from "../algorithms/registry.js";
import type { Decision } from "../decide/decision.js";
import { activeListener } from "../events/listeners.js";
import type { StoreClient } from "../limits/limiter.js";
import { checkRealCost, settleDecision, tellRefund, tellSettlement } from "../limits/settle.js";
import { isSlot, keepSlot } from "../limits/slots.js";
import type { CostFunction } from "../requests/functions.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import type { RefundWhen } from "../rules/refund-when.js";
import { reasonOf, shown } from "../support/errors.js";
import { yesOrNo } from "../support/options.js";
import { andThen, attempt, isPromise, type Promised, runInBackground } from "../support/promises.js";
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
  const real = new RealCosts(request);
  checks.forEach(({ limit }, i) => {
    const decision = all[i] as Decision;
    if (!isSlot(limit.policy) || !hasCharge(decision)) return;
    keepSlot(chargeOf<Policy>(decision) as ChargeRecord<Policy>, decision, client.onEvent);
  });
  return (status) => {
    const judged = new Map<RefundWhen, Promised<boolean>>();
    const changes = checks.map((check, i) => {
      const decision = all[i] as Decision;
      const { refundWhen } = check.rule;
      if (isSlot(check.limit.policy)) return refund(check, decision, client);
      if (refundWhen !== undefined && !judged.has(refundWhen)) judged.set(refundWhen, isRefunded(status, refundWhen, client));
      return andThen<boolean, unknown>(refundWhen === undefined ? false : (judged.get(refundWhen) as Promised<boolean>), (refunds) => {
        if (refunds) return refund(check, decision, client);
        return decision.allowed ? charge(real, status, check, decision, client) : undefined;
      });
    });
    return changes.some(isPromise) ? Promise.all(changes) : undefined;
  };
}

/** The real costs of a request. Each function runs once, even if several rules use it. */
class RealCosts<Req> {
  readonly #request: Req;
  readonly #known = new Map<CostFunction<Req>, Promised<number | undefined>>();

  constructor(request: Req) {
    this.#request = request;
  }

  of(cost: CostFunction<Req> | undefined, status: number): Promised<number | undefined> {
    if (cost === undefined) return undefined;
    if (!this.#known.has(cost)) this.#known.set(cost, cost(this.#request, { status }));
    return this.#known.get(cost);
  }
}

/** Whether to refund by this status; false if `refundWhen` fails. */
function isRefunded(status: number, refundWhen: RefundWhen, client: StoreClient): Promised<boolean> {
  const fault = (error: unknown): boolean => {
    failed("refund-failed", undefined, client, error);
    return false;
  };
  return attempt(() => andThen<unknown, boolean>(refundWhen(status), refunds), fault);
}

function refunds(answer: unknown): boolean {
  return yesOrNo("rateLimit", "refundWhen", answer, "(status) => status < 400");
}

/** Gives back what a request was charged. A slot that ends is not a refund, so it emits no event. */
function refund<Req>(check: RuleCheck<Req>, decision: Decision, client: StoreClient): PromiseLike<unknown> | undefined {
  return runInBackground(
    () => {
      const change = settleDecision(client.guard, check.limit, check.key, decision, 0);
      return isSlot(check.limit.policy) ? change : tellRefund(change, eventOf(check, decision), client.onEvent);
    },
    (error) => failed("refund-failed", check, client, error),
  );
}

/** Settles the request to its real cost, if its rule has `settle`. */
function charge<Req>(
  real: RealCosts<Req>,
  status: number,
  check: RuleCheck<Req>,
  decision: Decision,
  client: StoreClient,
): PromiseLike<unknown> | undefined {
  const { rule, limit, key } = check;
  return runInBackground(
    () =>
      andThen<unknown, unknown>(real.of(rule.settle, status), (answer) => {
        // Units that are held would come back.
        if (answer === undefined && decision.heldUntilMs === undefined) return undefined;
        const cost = answer === undefined ? decision.cost : checkRealCost(answer);
        const change = settleDecision(client.guard, limit, key, decision, cost);
        return tellSettlement(change, { ...eventOf(check, decision), cost }, client.onEvent);
      }),
    (error) => failed("settle-failed", check, client, error),
  );
}

function eventOf<Req>({ limit, key }: RuleCheck<Req>, decision: Decision): { name: string; key: string; decision: Decision } {
  return { name: limit.name, key, decision };
}

/** Reports a failure after the response, by event or on the console. */
function failed<Req>(
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
