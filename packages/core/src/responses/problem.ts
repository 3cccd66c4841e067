import type { Decision } from "../limits/decision.js";
import type { Body } from "./body.js";

const problemType = "application/problem+json";

/** The parts of a 429's body that never change: an attack makes very many of them. */
const quotaStart =
  '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":"';

/**
 * The body of a 429 (RFC 9457): the problem type that the IETF draft registers, with the names of the limits exceeded.
 * @param retryAfter in seconds; undefined if no wait would help.
 */
export function quotaExceeded(violated: readonly string[], decision: Decision | undefined, retryAfter: number | undefined): Body {
  // The detail has nothing to escape.
  const text = `${quotaStart}${detail(decision, retryAfter)}","violated-policies":${JSON.stringify(violated)}`;
  return { text: retryAfter === undefined ? `${text}}` : `${text},"retry-after":${retryAfter}}`, contentType: problemType };
}

/** The body of a 503: the store failed, so the limits cannot be checked. */
export function reducedCapacity(violated: readonly string[], retryAfter: number | undefined): Body {
  const text = JSON.stringify({
    type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
    title: "Temporarily reduced capacity",
    status: 503,
    detail: "The request's limits cannot be checked at the moment.",
    "violated-policies": violated,
    "retry-after": retryAfter,
  });
  return { text, contentType: problemType };
}

function detail(decision: Decision | undefined, retryAfter: number | undefined): string {
  if (decision === undefined) return "The request has no key to count it by.";
  if (retryAfter === undefined) return `The request costs ${decision.cost}, more than the limit of ${decision.limit} ever allows.`;
  return `Try again in ${retryAfter} second${retryAfter === 1 ? "" : "s"}.`;
}
