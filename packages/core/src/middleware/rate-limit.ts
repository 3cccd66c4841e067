import { combine } from "../limits/combine.js";
import type { CombinedDecision, Decision } from "../limits/decision.js";
import { type EventListener, isTold, listenerOf, tell } from "../limits/events.js";
import type { Limiter } from "../limits/limiter.js";
import { Receipts } from "../limits/receipt.js";
import { isZero, zeroDecision } from "../limits/zero-limit.js";
import type { RequestReader } from "../requests/request-reader.js";
import { ruleContext } from "../requests/rule-context.js";
import { enter, isChecked, type Visit } from "../requests/visits.js";
import { type Afterwards, afterwards } from "../responses/afterwards.js";
import { type Header, headerWriter, retryAfterSeconds } from "../responses/headers.js";
import { quotaExceeded, reducedCapacity } from "../responses/problem.js";
import { ActiveRules } from "../rules/active-rules.js";
import { yesOrNo } from "../rules/answer.js";
import { type CompiledRule, type Found, type RuleCheck, TurnedAway } from "../rules/compiled-rule.js";
import { guardStore, StoreGuard } from "../stores/guard.js";
import { type Check, checkStore, type Store, scopeOf } from "../stores/store.js";
import { FloodgateError, shown } from "../support/errors.js";
import type { Promised } from "../support/promises.js";
import { abandon, andThen, isPromise } from "../support/promises.js";
import { afterThisRun, steadyMs } from "../support/runtime.js";
import type { Asking } from "./asking.js";
import { heedBans, withBans } from "./bans.js";
import { throwFault } from "./faults.js";
import { isFirstUse, LateMade, lateMadeOn } from "./late-made.js";
import { checkRateLimitOptions, decisionName, type RateLimitOptions } from "./rate-limit-options.js";

/** What is to be done with a request. */
export interface Outcome {
  readonly action: "pass" | "reject";
  readonly headers: readonly Header[];
  /** The most restrictive decision; undefined where no limit applied. */
  readonly decision: Decision | undefined;
  /** How long to hold a request that passes. */
  readonly delayMs: number;
  /** Of a rejection: its status, and a body of `problemType` where nobody else answers it. */
  readonly status: number;
  readonly body: string;
  /** To be called once the response has been sent, where that may mean a refund or a settlement. */
  readonly sent: Afterwards | undefined;
}

/** The status for a response that nobody waited for, as nginx logs it. */
export const clientClosedRequest = 499;

const unlimited: Outcome = { action: "pass", headers: [], decision: undefined, delayMs: 0, status: 200, body: "", sent: undefined };

/**
 * A middleware without its framework: options checked when it is made, a request in, an outcome out. Where no function of
 * the request answers a promise and the store answers at once, it does too.
 */
export class RateLimit<Req> {
  readonly store: Store;
  readonly decisionName: string;
  readonly #where: string;
  readonly #asking: Asking;
  /** `"young"` in the run that has made it; then what its app is told by, if a request came in that run, until the next one. */
  #late: LateMade | "young" | undefined;
  /** Whether a request that the store cannot decide is turned away. */
  readonly #denies: boolean;
  readonly #reader: RequestReader<Req>;
  readonly #rules: ActiveRules<Req>;
  readonly #headers: ReturnType<typeof headerWriter>;
  readonly #skip: RateLimitOptions<Req>["skip"];
  readonly #plan: RateLimitOptions<Req>["plan"];
  readonly #refundWhen: RateLimitOptions<Req>["refundWhen"];

  /**
   * @param own the adapter's own options, which are its to check.
   * @throws FloodgateError where an option is wrong.
   */
  constructor(
    where: string,
    options: RateLimitOptions<Req, string>,
    own: readonly string[],
    reader: RequestReader<Req>,
    defaultStore: (onEvent: EventListener | undefined) => Store,
  ) {
    checkRateLimitOptions(where, options, own);
    this.#where = where;
    this.decisionName = decisionName(where, options.decisionName);
    this.#reader = reader;
    this.#skip = options.skip;
    this.#plan = options.plan;
    this.#refundWhen = options.refundWhen;
    this.#headers = headerWriter(where, options.headers);
    this.store = options.store === undefined ? defaultStore(options.onEvent) : checkStore(where, options.store);
    const receipts = Receipts.of(where, options.receiptSecret);
    this.#asking = { guard: guardStore(where, this.store, options), onEvent: listenerOf(options.onEvent), receipts };
    this.#denies = options.onStoreError === "deny";
    this.#rules = new ActiveRules(where, options, ruleContext(where, options, reader), this.store, this.#asking);
    if (this.#asking.guard instanceof StoreGuard) this.#asking.guard.listen();
    if (isFirstUse(scopeOf(this.store))) {
      this.#late = "young";
      afterThisRun(() => {
        if (this.#late === "young") this.#late = undefined;
      });
    }
  }

  /** One limiter a rule that is in force, by name. */
  get limiters(): ReadonlyMap<string, Limiter> {
    return this.#rules.current.limiters;
  }

  /** Leaves the source of its rules, of which the last stay in force, and the store's breaker, and gives their names back to the store. */
  close(): void {
    this.#rules.close();
    if (this.#asking.guard instanceof StoreGuard) this.#asking.guard.close();
  }

  /**
   * Decides a request. One that this middleware has met before is checked only under rules that it has not been checked under yet:
   * the app may have sent it on to another path, for which there are others.
   * @throws what functions of the request throw, now or later, and always an error.
   */
  decide(request: Req): Promised<Outcome> {
    try {
      const outcome = this.#decide(request);
      return isPromise(outcome) ? outcome.then(undefined, throwFault) : outcome;
    } catch (reason) {
      throwFault(reason);
    }
  }

  /** Notices a middleware that is made for one request. */
  #notice(request: Req, visit: Visit): void {
    const late = this.#late;
    if (late === "young") {
      const app = this.#reader.app?.(request);
      this.#late = app === undefined ? undefined : lateMadeOn(app);
    } else if (late !== undefined && visit.earlier === undefined) {
      late.isKept();
      this.#late = undefined;
    }
  }

  #decide(request: Req): Promised<Outcome> {
    const visit = enter(this.#reader.identity(request), this, this.#reader.plainIdentity === true);
    if (this.#late !== undefined) this.#notice(request, visit);
    if (this.#skip === undefined) return this.#limit(request, visit);
    return andThen<unknown, Outcome>(this.#skip(request), (answer) =>
      yesOrNo(this.#where, "skip", answer, '(req) => req.path === "/health"') ? unlimited : this.#limit(request, visit),
    );
  }

  #limit(request: Req, visit: Visit): Promised<Outcome> {
    // One version of the rules decides all of a request, whatever is put in force while its functions are waited for.
    const fitting = this.#rules.current.rules.find(request, this.#reader);
    const rules = visit.earlier === undefined ? fitting : fitting.filter(({ name }) => !isChecked(visit, name));
    if (this.#plan === undefined || rules.every(({ plans }) => plans === undefined)) return this.#check(request, visit, rules, undefined);
    return andThen<string | undefined, Outcome>(this.#plan(request), (plan) => this.#check(request, visit, rules, checkPlan(plan)));
  }

  #check(request: Req, visit: Visit, rules: readonly CompiledRule<Req>[], plan: string | undefined): Promised<Outcome> {
    // As long as it will be from the start: one that grows makes room for many, at each request.
    const found = new Array<Promised<Found<Req>>>(rules.length);
    let promised = false;
    try {
      for (let i = 0; i < found.length; i++) {
        const rule = rules[i] as CompiledRule<Req>;
        const one = rule.test === undefined ? rule.check(request, plan) : testThenCheck(rule, rule.test(request), request, plan);
        promised ||= isPromise(one);
        found[i] = one;
      }
    } catch (error) {
      abandon(found);
      throw error;
    }
    if (promised) return Promise.all(found).then((all) => this.#ask(request, visit, rules, all));
    return this.#ask(request, visit, rules, found as Found<Req>[]);
  }

  #ask(request: Req, visit: Visit, rules: readonly CompiledRule<Req>[], found: readonly Found<Req>[]): Promised<Outcome> {
    const checks = found.every(isCheck) ? found : found.filter(isCheck);
    const keyless = checks === found ? [] : found.filter((one) => one instanceof TurnedAway).map(({ name }) => name);
    if (keyless.length > 0) {
      for (const name of keyless) this.#asking.onEvent?.({ type: "missing-key", name });
      return reject(429, [noStore], quotaExceeded(keyless, undefined), undefined);
    }
    const only = checks[0];
    if (only === undefined) return unlimited;
    visit.rules = checks === found ? rules : checks.map(({ rule }) => rule);
    if (this.#late instanceof LateMade) this.#late.meets(only.key, only.limit.name, this.#asking.onEvent);
    if (checks.some(isZero)) return this.#askWithZero(request, visit, checks);
    const { guard } = this.#asking;
    const asked = withBans(checks);
    if (asked.length > 1) {
      return andThen<readonly Decision[], Outcome>(this.#decideAll(checks, asked), (decisions) =>
        this.#outcome(request, visit, checks, combine(checks, decisions)),
      );
    }
    return andThen(guard.consume(only.limit, only.key, only.cost), (decision: Decision) =>
      this.#outcome(request, visit, checks, { allowed: decision.allowed || only.shadow === true, decision, all: [decision] }),
    );
  }

  #decideAll(checks: readonly RuleCheck<Req>[], asked: readonly Check[]): Promised<readonly Decision[]> {
    const { guard } = this.#asking;
    const deadlineMs = asked.length > checks.length && guard instanceof StoreGuard ? steadyMs() + guard.timeoutMs : 0;
    return andThen<readonly Decision[], readonly Decision[]>(guard.consumeAll(asked), (answers) =>
      heedBans(checks, answers, this.#asking, deadlineMs),
    );
  }

  /** A limit of 0 rejects the request before the store is asked. One that is only watched leaves it to the other limits. */
  #askWithZero(request: Req, visit: Visit, checks: readonly RuleCheck<Req>[]): Promised<Outcome> {
    const zeros = checks.filter(isZero);
    const rejections = zeros.map(({ limit, cost }) => zeroDecision(limit, cost));
    const others = zeros.every(({ shadow }) => shadow === true) ? checks.filter((check) => !isZero(check)) : [];
    const decided = others.length === 0 ? [] : this.#decideAll(others, withBans(others));
    const all = [...others, ...zeros];
    return andThen<readonly Decision[], Outcome>(decided, (decisions) =>
      this.#outcome(request, visit, all, combine(all, [...decisions, ...rejections])),
    );
  }

  #outcome(request: Req, visit: Visit, checks: readonly RuleCheck<Req>[], combined: CombinedDecision): Outcome {
    const { allowed, decision, all } = combined;
    const { onEvent } = this.#asking;
    visit.decision = decision;
    if (onEvent !== undefined) tellAll(checks, combined, onEvent);
    const decisions = enforced(checks, all);
    // What was decided without the store tells nothing of it.
    let headers: Header[] = [];
    if (this.#headers !== undefined && decisions.length > 0 && !decision.degraded) {
      visit.reported = decision;
      headers = this.#headers({ decisions, reported: decision, visit, rejected: !allowed });
    }
    if (!allowed) {
      const retryAfter = retryAfterSeconds(decision);
      if (retryAfter !== undefined) headers.push({ name: "Retry-After", value: `${retryAfter}`, list: false });
      headers.push(noStore);
      const violated = decisions.filter((one) => !one.allowed).map((one) => one.name);
      if (decision.degraded && this.#denies) return reject(503, headers, reducedCapacity(violated, retryAfter), decision);
      return reject(429, headers, quotaExceeded(violated, decision), decision);
    }
    let delayMs = 0;
    for (const one of decisions) if (one.delayMs > delayMs) delayMs = one.delayMs;
    const sent = afterwards(request, checks, all, this.#refundWhen, this.#asking);
    return { action: "pass", headers, decision, delayMs, status: 200, body: "", sent };
  }
}

function testThenCheck<Req>(
  rule: CompiledRule<Req>,
  answer: Promised<unknown>,
  request: Req,
  plan: string | undefined,
): Promised<Found<Req>> {
  return andThen<unknown, Found<Req>>(answer, (fits) => (rule.applies(fits) ? rule.check(request, plan) : undefined));
}

function checkPlan(plan: unknown): string | undefined {
  if (typeof plan === "string" || plan === undefined) return plan;
  if (plan === null) return undefined;
  throw new FloodgateError(
    "FLOODGATE_MISSING_PLAN",
    `\`plan\` must answer the name of the request's plan, or undefined, but answered ${shown(plan)}.`,
  );
}

function tellAll(checks: readonly Check[], { allowed, all }: CombinedDecision, onEvent: EventListener): void {
  checks.forEach(({ key, shadow }, i) => {
    const decision = all[i] as Decision;
    if (isTold(decision, allowed)) tell(onEvent, key, decision, shadow === true);
  });
}

function isCheck<Req>(found: Found<Req>): found is RuleCheck<Req> {
  return found !== undefined && !(found instanceof TurnedAway);
}

/** The decisions of limits that are not only watched: the list itself where all are, as is the rule. */
function enforced(checks: readonly Check[], all: readonly Decision[]): readonly Decision[] {
  return checks.some(({ shadow }) => shadow === true) ? all.filter((_, i) => checks[i]?.shadow !== true) : all;
}

const noStore: Header = { name: "Cache-Control", value: "no-store", list: false };

function reject(status: number, headers: readonly Header[], body: string, decision: Decision | undefined): Outcome {
  return { action: "reject", headers, decision, delayMs: 0, status, body, sent: undefined };
}
