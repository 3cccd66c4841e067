import { type Check, type CombinedDecision, type Decision, mostRestrictive } from "../decide/decision.js";
import type { StoreClient } from "../limits/limiter.js";
import type { RequestContext } from "../requests/request-context.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import type { RefundOption } from "../rules/cost.js";
import { conflict, kindOf, wrongOption } from "../support/errors.js";
import { type Afterwards, afterwards } from "./afterwards.js";
import { type Header, type HeadersOption, headerWriter, noStore, retryAfterSeconds } from "./headers.js";

/** The body of a response. */
export interface Body {
  readonly text: string;
  readonly contentType: string;
}

/** What a rule asked of the store: which limit, for which key (as text), at which cost. */
export interface CheckedRule extends Check {
  readonly rule: { readonly name: string };
}

/** What an adapter does with a request. */
export interface Outcome {
  readonly action: "pass" | "reject";
  readonly headers: readonly Header[];
  /** The most restrictive decision; undefined if no limit applied. */
  readonly decision: Decision | undefined;
  /** How long to hold a request that passes, in milliseconds. */
  readonly delayMs: number;
  /** The status of a rejection, and its body unless `onLimited` answers. */
  readonly status: number;
  readonly body: Body;
  /** What the rules asked of the store, and the decision of each. Both are empty if no rule counted the request. */
  readonly checks: readonly CheckedRule[];
  readonly decisions: readonly Decision[];
  /** Call it once the response is over. Undefined if nothing can be refunded or settled. */
  readonly afterResponse: Afterwards | undefined;
}

const noBody: Body = { text: "", contentType: "text/plain" };
const nothing: readonly never[] = [];
const undecided = { decision: undefined, delayMs: 0, checks: nothing, decisions: nothing, afterResponse: undefined } as const;

/** Of a request that no limit applies to. */
export const unlimited: Outcome = { action: "pass", headers: nothing, status: 200, body: noBody, ...undecided };

/** Of a request whose client has left before it was counted. It is held, and adapters do not serve a held request whose client has left. */
export const clientGone: Outcome = { ...unlimited, delayMs: 2 ** 31 - 1 };

/** Picks the decisions that a response shows. */
export type DecisionFilter = (decisions: readonly Decision[]) => readonly Decision[];

export interface ResponseOptions {
  /** The response headers: `"standard"` (default), `"draft-7"`, `"draft-6"`, `"legacy"`, `["standard", "legacy"]`, or `false` for none. */
  headers?: HeadersOption;
  /** Answers every 429 in place of the problem+json body: a text (text/plain), or an object (JSON). The headers and the status stay. */
  body?: string | object;
  /**
   * Whether to refund a request, by its response status: `(status) => status < 400`, or a list of statuses, `"5xx,404"`. 499 if the client
   * disconnected early, which `4xx` does not include.
   */
  refundWhen?: RefundOption;
}

export class Responder<Req> {
  readonly #client: StoreClient;
  readonly #writeHeaders: ReturnType<typeof headerWriter>;
  /** The body of every 429. Undefined for the default, which says which limits were exceeded. */
  readonly #body: Body | undefined;
  /** Whether a request is rejected if the store cannot decide it. */
  readonly #failsClosed: boolean;

  constructor(where: string, options: ResponseOptions & { readonly onStoreError?: unknown }, client: StoreClient) {
    this.#writeHeaders = headerWriter(where, options.headers);
    this.#body = staticBody(where, options);
    this.#failsClosed = options.onStoreError === "deny";
    this.#client = client;
  }

  /** @param filter picks the enforced decisions that the response shows. Default: all. */
  outcomeOf(context: RequestContext<Req>, checks: readonly RuleCheck<Req>[], whole: CombinedDecision, filter?: DecisionFilter): Outcome {
    const { allowed, decision, all } = whole;
    let hasShadow = false;
    let hasHidden = false;
    let mayChange = false;
    for (const { shadow, rule, limit } of checks) {
      if (shadow === true) hasShadow = true;
      if (!rule.inHeaders) hasHidden = true;
      if (rule.settle !== undefined || rule.refundWhen !== undefined || limit.policy.holdMs !== undefined) mayChange = true;
    }
    let enforced = hasShadow ? all.filter((_, i) => checks[i]?.shadow !== true) : all;
    let inHeaders = enforced;
    if (hasHidden && this.#writeHeaders !== undefined)
      inHeaders = all.filter((_, i) => checks[i]?.shadow !== true && checks[i]?.rule.inHeaders === true);
    if (filter !== undefined) {
      enforced = filter(enforced);
      inHeaders = filter(inHeaders);
    }
    let headers: Header[] = [];
    // The numbers of a degraded decision are unknown.
    if (this.#writeHeaders !== undefined && inHeaders.length > 0 && !decision.degraded) {
      const reported = hasHidden ? mostRestrictive(inHeaders) : decision;
      context.reported = reported;
      headers = this.#writeHeaders({ decisions: inHeaders, reported, context, rejectedBy: allowed ? undefined : decision });
    }
    if (!allowed) return this.#reject(headers, enforced, checks, whole);
    let delayMs = 0;
    for (const limit of enforced) if (limit.delayMs > delayMs) delayMs = limit.delayMs;
    const afterResponse = mayChange ? afterwards(context.request, checks, all, this.#client) : undefined;
    return { action: "pass", headers, decision, delayMs, status: 200, body: noBody, checks, decisions: all, afterResponse };
  }

  #reject(
    headers: Header[],
    enforced: readonly Decision[],
    checks: readonly RuleCheck<Req>[],
    { decision, all }: CombinedDecision,
  ): Outcome {
    const retryAfter = retryAfterSeconds(decision);
    if (retryAfter !== undefined) headers.push({ name: "Retry-After", value: `${retryAfter}` });
    headers.push(noStore);
    const unavailable = decision.degraded && this.#failsClosed;
    let body = unavailable ? undefined : this.#body;
    if (body === undefined) {
      const violated: string[] = [];
      for (const { allowed, name } of enforced) if (!allowed) violated.push(name);
      body = unavailable ? reducedCapacity(violated, retryAfter) : quotaExceeded(violated, decision, retryAfter);
    }
    return {
      action: "reject",
      headers,
      decision,
      delayMs: 0,
      status: unavailable ? 503 : 429,
      body,
      checks,
      decisions: all,
      afterResponse: undefined,
    };
  }

  /** @param names the rules for which the request has no key. */
  rejectKeyless(names: Iterable<string>): Outcome {
    return rejection(429, this.#body ?? quotaExceeded([...new Set(names)], undefined, undefined));
  }
}

/**
 * The body that an app answers every 429 with: a text, or an object as JSON. Its text is made once.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if it is neither, or an object that JSON cannot write;
 * `FLOODGATE_CONFLICTING_OPTIONS` beside `onLimited`.
 */
function staticBody(where: string, options: { readonly body?: unknown; readonly onLimited?: unknown }): Body | undefined {
  const { body, onLimited } = options;
  if (body === undefined) return undefined;
  if (onLimited !== undefined) {
    throw conflict(`${where}: \`body\` and \`onLimited\` both answer a rejected request. Give one of the two.`, ["body"]);
  }
  if (typeof body === "string") return { text: body, contentType: "text/plain; charset=utf-8" };
  // JSON would write a promise, a buffer or a stream as something else.
  const isPlain = Array.isArray(body) || kindOf(body) === "Object";
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
const ambiguousPath: Body = {
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

/** Rejects a request that no store has decided. */
function rejection(status: number, body: Body): Outcome {
  return { action: "reject", headers: [noStore], status, body, ...undecided };
}

/** Of a request that servers would read in different ways. */
export const ambiguous: Outcome = rejection(400, ambiguousPath);

export const withHeader = (outcome: Outcome, header: Header): Outcome => ({ ...outcome, headers: [...outcome.headers, header] });
