import type { Decision } from "../decision.js";

/** One middleware's meeting with a request, and what came of it. */
export interface Visit {
  readonly by: object;
  readonly before: Visit | undefined;
  decision: Decision | undefined;
}

/**
 * What each request has met. Beside the requests rather than on them: frameworks change a request's prototype, after which
 * V8 takes longer over a new property than over all else that a limit does.
 */
const visits = new WeakMap<object, Visit>();

/** Enters a middleware in what a request has met, or answers undefined if it is there already. */
export function enter(request: object, by: object): Visit | undefined {
  const before = visits.get(request);
  for (let visit = before; visit !== undefined; visit = visit.before) if (visit.by === by) return undefined;
  const visit = { by, before, decision: undefined };
  visits.set(request, visit);
  return visit;
}

/** The decision of the limit that a request met last; undefined where none applied. */
export function decisionOf(request: object): Decision | undefined {
  let visit = visits.get(request);
  while (visit !== undefined && visit.decision === undefined) visit = visit.before;
  return visit?.decision;
}
