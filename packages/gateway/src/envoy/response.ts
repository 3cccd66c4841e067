import type { Policy } from "@floodgate/core";
import type { DescriptorStatus, DescriptorsOutcome } from "../service/descriptors.js";

const code = { ok: 1, overLimit: 2 } as const;

/** `RateLimitResponse.RateLimit.Unit` */
const unit = { second: 1, minute: 2, hour: 3, day: 4, month: 5, year: 6, week: 7 } as const;

/** The `RateLimitResponse` to Envoy. Fields that are undefined, here and in what it contains, are not sent: then they are zero or missing. */
export function responseOf({ outcome, statuses }: DescriptorsOutcome): object {
  const isOver = outcome.action === "reject";
  const headers = outcome.headers.map(({ name: key, value }) => ({ key, value }));
  // Envoy would call the body text/plain.
  if (isOver) headers.push({ key: "Content-Type", value: outcome.body.contentType });
  return {
    overallCode: isOver ? code.overLimit : code.ok,
    statuses: statuses.map(statusOf),
    responseHeaders: headers,
    rawBody: isOver ? Buffer.from(outcome.body.text) : undefined,
  };
}

/** A degraded decision knows no numbers. */
function statusOf({ allowed, decision }: DescriptorStatus): object {
  const own = allowed ? code.ok : code.overLimit;
  if (decision === undefined || decision.degraded) return { code: own };
  const { name, policy, remaining, retryAfterMs, resetAfterMs } = decision;
  const waitMs = retryAfterMs > 0 ? retryAfterMs : Math.min(resetAfterMs, policy.spanMs);
  return {
    code: own,
    currentLimit: limitOf(name, policy),
    limitRemaining: Math.min(remaining, maxUint32) || undefined,
    untilReset: waitMs === Number.POSITIVE_INFINITY ? undefined : durationOf(waitMs),
  };
}

function durationOf(ms: number): object {
  const seconds = Math.floor(ms / 1000);
  return { seconds: seconds || undefined, nanos: (ms - seconds * 1000) * 1_000_000 || undefined };
}

const maxUint32 = 2 ** 32 - 1;

const units: ReadonlyMap<number, number> = new Map([
  [1000, unit.second],
  [60_000, unit.minute],
  [3_600_000, unit.hour],
  [86_400_000, unit.day],
  [604_800_000, unit.week],
]);

/** A window that is no unit of Envoy's has the unit UNKNOWN: Envoy then shows the limit without a window. */
function limitOf(name: string, policy: Policy): object {
  const own = policy.algorithm === "calendar-window" ? unit[policy.per] : units.get(policy.spanMs);
  return { requestsPerUnit: Math.min(policy.quota, maxUint32), unit: own, name };
}
