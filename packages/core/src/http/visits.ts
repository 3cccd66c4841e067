import type { Decision } from "../decision.js";

/** One middleware's meeting with a request, and what came of it. */
export interface Visit {
  readonly by: { readonly decisionName: string };
  readonly before: Visit | undefined;
  decision: Decision | undefined;
}

/**
 * What a request has met, on the request itself or beside it. A property is the cheaper of the two, unless a framework changes the
 * request's prototype: then V8 takes longer over a new one than over all else that a limit does.
 */
const met: unique symbol = Symbol("floodgate.visits");
const visits = new WeakMap<object, Visit>();

function visitsOf(request: { readonly [met]?: Visit }): Visit | undefined {
  return request[met] ?? visits.get(request);
}

/**
 * Enters a middleware in what a request has met, or answers undefined if it is there already.
 * @param onRequest whether it is cheap to keep that on the request.
 */
export function enter(request: { [met]?: Visit }, by: Visit["by"], onRequest: boolean): Visit | undefined {
  const before = onRequest ? request[met] : visits.get(request);
  for (let visit = before; visit !== undefined; visit = visit.before) if (visit.by === by) return undefined;
  const visit = { by, before, decision: undefined };
  if (onRequest) request[met] = visit;
  else visits.set(request, visit);
  return visit;
}

/** The decision of the limit of that name for it that a request met last; undefined where none applied. */
export function decisionOf(request: object, decisionName = "rateLimit"): Decision | undefined {
  let visit = visitsOf(request);
  while (visit !== undefined && (visit.decision === undefined || visit.by.decisionName !== decisionName)) visit = visit.before;
  return visit?.decision;
}
