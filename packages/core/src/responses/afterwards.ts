import type { Decision } from "../limits/decision.js";
import { giveBack, settle } from "../limits/settle.js";
import { type Asking, unheard } from "../middleware/asking.js";
import { yesOrNo } from "../rules/answer.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { reasonOf, shown } from "../support/errors.js";
import type { Promised } from "../support/promises.js";
import { andThen, isPromise } from "../support/promises.js";
import { warnOnce } from "../support/warn.js";

/**
 * Does what is to be done once the response has been sent, of which the status is known then. Answers a promise where that takes
 * longer; nobody needs to wait for it, but where a runtime ends what nobody waits for.
 */
export type Afterwards = (status: number) => Promise<unknown> | undefined;

/** Whether to give back what a request took, by its response's status. */
export type RefundWhen = (status: number) => Promised<boolean>;

/** Of a request that may be refunded or settled; undefined of any other. */
export function afterwards<Req>(
  request: Req,
  checks: readonly RuleCheck<Req>[],
  all: readonly Decision[],
  refundWhen: RefundWhen | undefined,
  asking: Asking,
): Afterwards | undefined {
  if (refundWhen === undefined && !checks.some(({ rule }) => rule.settle !== undefined)) return undefined;
  const change = (status: number, refunds: boolean): Promise<unknown> | undefined => {
    const changes = checks.map((check, i) => {
      const decision = all[i] as Decision;
      if (refunds) return refund(check, decision, asking);
      return decision.allowed ? charge(request, status, check, decision, asking) : undefined;
    });
    return changes.some(isPromise) ? Promise.all(changes) : undefined;
  };
  return (status) => {
    const refunds = refundWhen === undefined ? false : isRefunded(status, refundWhen, asking);
    return isPromise(refunds) ? refunds.then((answer) => change(status, answer)) : change(status, refunds);
  };
}

/** Whether a response is one to refund: where that cannot be told, it is not. */
function isRefunded(status: number, refundWhen: RefundWhen, asking: Asking): boolean | Promise<boolean> {
  const fault = (error: unknown): boolean => {
    failed("refund-failed", undefined, asking, error);
    return false;
  };
  try {
    const answer: Promised<unknown> = refundWhen(status);
    return isPromise(answer) ? Promise.resolve(answer).then(refunds).catch(fault) : refunds(answer);
  } catch (error) {
    return fault(error);
  }
}

function refunds(answer: unknown): boolean {
  return yesOrNo("rateLimit", "refundWhen", answer, "(status) => status < 400");
}

function refund<Req>(check: RuleCheck<Req>, decision: Decision, asking: Asking): PromiseLike<unknown> | undefined {
  return unheard(
    () => giveBack(asking.guard, check.limit, check.key, decision, asking.onEvent),
    (error) => failed("refund-failed", check, asking, error),
  );
}

/** Charges what the request has really cost, where its rule says so. */
function charge<Req>(
  request: Req,
  status: number,
  check: RuleCheck<Req>,
  decision: Decision,
  asking: Asking,
): PromiseLike<unknown> | undefined {
  const { rule, limit, key } = check;
  return unheard(
    () =>
      andThen<unknown, unknown>(rule.settle?.(request, { status }), (cost) =>
        cost === undefined ? undefined : settle(asking.guard, limit, key, decision, cost as number, asking.onEvent),
      ),
    (error) => failed("settle-failed", check, asking, error),
  );
}

/** The response is gone, so nobody else can be told. */
function failed<Req>(
  type: "refund-failed" | "settle-failed",
  check: RuleCheck<Req> | undefined,
  { onEvent }: Asking,
  error: unknown,
): void {
  const whose = check === undefined ? {} : { name: check.limit.name, key: check.key };
  if (onEvent !== undefined) {
    onEvent({ type, ...whose, error });
    return;
  }
  const { code, why } = reasonOf(error);
  const rule = check === undefined ? "" : ` under ${shown(check.limit.name)}`;
  warnOnce(
    code ?? type,
    `a request${rule} could not be ${type === "refund-failed" ? "refunded" : "settled"}: ${why} \`onEvent\` is told each time.`,
  );
}
