import type { Decision } from "../limits/decision.js";

/** One middleware's meeting with a request, and what came of it. */
export interface Visit {
  readonly by: { readonly decisionName: string };
  readonly before: Visit | undefined;
  /** The last meeting before with the same middleware: mounted twice, or met again where the app has sent the request on. */
  readonly earlier: Visit | undefined;
  /** What the request has been checked under. Its checks would tell too, but to keep them alive costs more than to make them. */
  rules: readonly { readonly name: string }[];
  decision: Decision | undefined;
  /** The decision where headers report it: not that of a limit which is only watched, say. */
  reported: Decision | undefined;
}

/**
 * What a request has met, on the request itself or beside it. A property is the cheaper of the two, unless a framework changes the
 * request's prototype: then V8 takes longer over a new one than over all else that a limit does.
 */
const met: unique symbol = Symbol("floodgate.visits");
const visits = new WeakMap<object, Visit>();
const none: Visit["rules"] = [];

function visitsOf(request: { readonly [met]?: Visit }): Visit | undefined {
  return request[met] ?? visits.get(request);
}

/**
 * Adds a meeting to what a request has met.
 * @param onRequest whether it is cheap to keep that on the request.
 */
export function enter(request: { [met]?: Visit }, by: Visit["by"], onRequest: boolean): Visit {
  const before = onRequest ? request[met] : visits.get(request);
  let earlier = before;
  while (earlier !== undefined && earlier.by !== by) earlier = earlier.before;
  const visit: Visit = { by, before, earlier, rules: none, decision: undefined, reported: undefined };
  if (onRequest) request[met] = visit;
  else visits.set(request, visit);
  return visit;
}

/** Whether the request has been checked under a rule of that name at an earlier meeting with the same middleware. */
export function isChecked({ earlier }: Visit, name: string): boolean {
  for (let visit = earlier; visit !== undefined; visit = visit.earlier) {
    if (visit.rules.some((rule) => rule.name === name)) return true;
  }
  return false;
}

/** The decision of the limit of that name for it that a request met last; undefined where none applied. */
export function decisionOf(request: object, decisionName = "rateLimit"): Decision | undefined {
  let visit = visitsOf(request);
  while (visit !== undefined && (visit.decision === undefined || visit.by.decisionName !== decisionName)) visit = visit.before;
  return visit?.decision;
}
