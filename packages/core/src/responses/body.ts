import type { Decision } from "../decide/decision.js";
import { conflict, wrongOption } from "../support/errors.js";

/** The body of a response. */
export interface Body {
  readonly text: string;
  readonly contentType: string;
}

/**
 * The body that an app answers every 429 with: a text, or an object as JSON. Its text is made once.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if it is neither, or an object that JSON cannot write;
 * `FLOODGATE_CONFLICTING_OPTIONS` beside `onLimited`.
 */
export function staticBody(where: string, options: { readonly body?: unknown; readonly onLimited?: unknown }): Body | undefined {
  const { body, onLimited } = options;
  if (body === undefined) return undefined;
  if (onLimited !== undefined) {
    throw conflict(`${where}: \`body\` and \`onLimited\` both answer a rejected request. Give one of the two.`, ["body"]);
  }
  if (typeof body === "string") return { text: body, contentType: "text/plain; charset=utf-8" };
  // JSON would write a promise, a buffer or a stream as something else.
  const isPlain = Array.isArray(body) || Object.prototype.toString.call(body) === "[object Object]";
  const text = isPlain ? jsonOf(body) : undefined;
  if (text !== undefined) return { text, contentType: "application/json; charset=utf-8" };
  const example = 'body: "Slow down", or body: { error: "Too many requests" }';
  throw wrongOption(where, "body", "a text, or an object that JSON can write", body, example);
}

function jsonOf(body: unknown): string | undefined {
  try {
    return JSON.stringify(body);
  } catch {
    return undefined;
  }
}

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

/** The body of a 400: servers would read the path in different ways, so nobody can say which rules count the request. */
export const ambiguousPath: Body = {
  text: '{"type":"about:blank","title":"Bad Request","status":400,"detail":"Servers read this path in different ways. Send it without dot segments, backslashes, empty segments and encoded slashes."}',
  contentType: problemType,
};

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

/** What a rejected caller can do. */
export function detail(decision: Decision | undefined, retryAfter: number | undefined): string {
  if (decision === undefined) return "The request has no key to count it by.";
  if (retryAfter === undefined) return `The request costs ${decision.cost}, more than the limit of ${decision.limit} ever allows.`;
  return `Try again in ${retryAfter} second${retryAfter === 1 ? "" : "s"}.`;
}
