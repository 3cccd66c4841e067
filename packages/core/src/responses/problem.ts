import type { Decision } from "../limits/decision.js";
import type { Body } from "./body.js";
import { retryAfterSeconds } from "./headers.js";

/** A problem (RFC 9457). */
const problem = (members: object): Body => ({ text: JSON.stringify(members), contentType: "application/problem+json" });

/** The body of a 429: the problem type of the IETF draft, with the names of the exceeded limits. */
export function quotaExceeded(violated: readonly string[], decision: Decision | undefined): Body {
  const retryAfter = decision === undefined ? undefined : retryAfterSeconds(decision);
  return problem({
    type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    title: "Quota exceeded",
    status: 429,
    detail: detail(decision, retryAfter),
    "violated-policies": violated,
    "retry-after": retryAfter,
  });
}

/** The body of a 503: the store failed, so the limits cannot be checked. */
export function reducedCapacity(violated: readonly string[], retryAfter: number | undefined): Body {
  return problem({
    type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
    title: "Temporarily reduced capacity",
    status: 503,
    detail: "The request's limits cannot be checked at the moment.",
    "violated-policies": violated,
    "retry-after": retryAfter,
  });
}

function detail(decision: Decision | undefined, retryAfter: number | undefined): string {
  if (decision === undefined) return "The request has no key to count it by.";
  if (retryAfter === undefined) return `The request costs ${decision.cost}, more than the limit of ${decision.limit} ever allows.`;
  return `Try again in ${retryAfter} second${retryAfter === 1 ? "" : "s"}.`;
}
