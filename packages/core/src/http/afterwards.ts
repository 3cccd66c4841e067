import type { Decision } from "../decision.js";
import { shown } from "../errors.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { giveBack, settle } from "../settle.js";
import { andThen } from "../store.js";
import { type Asking, tellQuietly, unheard } from "./asking.js";
import { warnOnce } from "./warn.js";

/** What is to be done once the response has been sent, of which the status is known then; undefined where nothing is. */
export function afterwards<Req>(
  request: Req,
  checks: readonly RuleCheck<Req>[],
  all: readonly Decision[],
  refundWhen: ((status: number) => boolean) | undefined,
  asking: Asking,
): ((status: number) => void) | undefined {
  if (refundWhen === undefined && !checks.some(({ rule }) => rule.settle !== undefined)) return undefined;
  return (status) => {
    let refunds = false;
    unheard(
      () => {
        refunds = refundWhen?.(status) === true;
      },
      (error) => failed("refund-failed", undefined, asking, error),
    );
    checks.forEach((check, i) => {
      const decision = all[i] as Decision;
      if (refunds) refund(check, decision, asking);
      else if (decision.allowed) charge(request, status, check, decision, asking);
    });
  };
}

function refund<Req>(check: RuleCheck<Req>, decision: Decision, asking: Asking): void {
  unheard(
    () => giveBack(asking.guard, check.limit, check.key, decision, asking.onEvent),
    (error) => failed("refund-failed", check, asking, error),
  );
}

/** Charges what the request has really cost, where its rule says so. */
function charge<Req>(request: Req, status: number, check: RuleCheck<Req>, decision: Decision, asking: Asking): void {
  const { rule, limit, key } = check;
  unheard(
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
    tellQuietly(onEvent, { type, ...whose, error });
    return;
  }
  const { code = type, message = String(error) } = (error ?? {}) as { code?: string; message?: string };
  const rule = check === undefined ? "" : ` under ${shown(check.limit.name)}`;
  warnOnce(
    `${code}`,
    `a request${rule} could not be ${type === "refund-failed" ? "refunded" : "settled"}: ${message} \`onEvent\` is told each time.`,
  );
}
