import { combine } from "../decide/all-or-nothing.js";
import type { CombinedDecision, Decision } from "../decide/decision.js";
import { checkStore, type Store, scopeOf } from "../decide/store.js";
import { hasZero, isZero } from "../decide/zero-limits.js";
import { emitDecisions } from "../events/decision-events.js";
import type { EventListener } from "../events/events.js";
import { emitWarning, heard, listenerOf } from "../events/listeners.js";
import { runningMs } from "../failure/running-clock.js";
import { guardStore } from "../failure/store-guard.js";
import type { Limiter } from "../limits/limiter.js";
import { Receipts } from "../limits/receipt.js";
import type { StoreClient } from "../limits/store-client.js";
import { isAmbiguous } from "../requests/path.js";
import { ProxyCheck } from "../requests/proxy-check.js";
import { Meeting } from "../requests/request-context.js";
import { type RequestSettings, requestSettings } from "../requests/request-options.js";
import type { RequestReader } from "../requests/request-reader.js";
import { ambiguousPath, type Body, quotaExceeded, reducedCapacity, staticBody } from "../responses/body.js";
import { type Header, headerWriter, retryAfterSeconds } from "../responses/headers.js";
import { ActiveRules } from "../rules/active-rules.js";
import type { Asked, CompiledRule, RuleCheck } from "../rules/compiled-rule.js";
import { ruleContext } from "../rules/rule-context.js";
import type { RuleSource } from "../rules/rule-source.js";
import { reasonOf } from "../support/errors.js";
import { yesOrNo } from "../support/options.js";
import { abandon, andThen, isPromise, type Promised } from "../support/promises.js";
import { afterThisRun, steadyMs } from "../support/runtime.js";
import { WeakList } from "../support/weak-list.js";
import { afterwards } from "./afterwards.js";
import { countTowardsBans } from "./bans.js";
import { askDescriptors, type DescriptorAsk, type DescriptorsOutcome, oncePerName, sharedChecks, statusesOf } from "./descriptors.js";
import { throwFault } from "./faults.js";
import { DoubleCounts, isFirstUse, MadePerRequest, madePerRequestOf } from "./mounting-mistakes.js";
import { type NamedCheck, type NamedDecisions, namedRuleChecks } from "./named-checks.js";
import { noBody, noStore, type Outcome, rejection, unlimited } from "./outcome.js";
import { checkRateLimitOptions, decisionName, type RateLimitOptions } from "./rate-limit-options.js";

/** The middlewares of this process that are not closed. */
// biome-ignore lint/suspicious/noExplicitAny: middlewares of several frameworks
export const openMiddlewares: WeakList<RateLimit<any>> = new WeakList();

/**
 * A middleware without its framework. The constructor checks the options. Then `decide` takes a request and returns an outcome; it returns a
 * promise only if a function of the app or the store does.
 *
 * The steps of a request: `meet` it, `find` the rules that match, `ask` each rule for its check, `decide` in the store, `report` the outcome.
 */
export class RateLimit<Req> {
  readonly store: Store;
  readonly decisionName: string;
  readonly #where: string;
  readonly #client: StoreClient;
  readonly #settings: RequestSettings<Req>;
  readonly #rules: ActiveRules<Req>;
  readonly #writeHeaders: ReturnType<typeof headerWriter>;
  readonly #skip: RateLimitOptions<Req>["skip"];
  readonly #refundWhen: RateLimitOptions<Req>["refundWhen"];
  /** The body of every 429. Undefined for the default, which says which limits were exceeded. */
  readonly #body: Body | undefined;
  /** Whether a request is rejected if the store cannot decide it. */
  readonly #failsClosed: boolean;
  /** Undefined once enough requests were checked, or with the option `clientIp`. */
  #proxyCheck: ProxyCheck<Req> | undefined;
  /** `"new"` until the end of the run of the event loop that made it. If a request comes in that run: its app's, until the next request. */
  #madePerRequest: MadePerRequest | "new" | undefined;
  readonly #doubleCounts: DoubleCounts;
  #hasWarnedOfFault = false;

  /**
   * @param own the adapter's own options, which the adapter checks.
   * @throws FloodgateError if an option is wrong.
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
    this.#skip = options.skip;
    this.#refundWhen = options.refundWhen;
    this.#failsClosed = options.onStoreError === "deny";
    this.#writeHeaders = headerWriter(where, options.headers);
    this.#body = staticBody(where, options);
    this.#settings = requestSettings(where, options, reader);
    const onEvent = listenerOf(options.onEvent);
    if (options.clientIp === undefined) this.#proxyCheck = new ProxyCheck(reader, onEvent);
    this.store = options.store === undefined ? defaultStore(options.onEvent) : checkStore(where, options.store);
    const receipts = Receipts.of(where, options);
    this.#client = { guard: guardStore(where, this.store, options), onEvent, receipts };
    this.#rules = new ActiveRules(where, options, ruleContext(where, options, reader, onEvent), this.store, this.#client);
    this.#client.guard.listen();
    openMiddlewares.add(this);
    this.#doubleCounts = new DoubleCounts(this, scopeOf(this.store));
    if (isFirstUse(scopeOf(this.store))) {
      this.#madePerRequest = "new";
      afterThisRun(() => {
        if (this.#madePerRequest === "new") this.#madePerRequest = undefined;
      });
    }
  }

  /** The active rules. */
  get rules(): readonly CompiledRule<Req>[] {
    return this.#rules.current.rules.all;
  }

  /** Where the rules come from, if they may change. */
  get source(): RuleSource | undefined {
    return this.#rules.source;
  }

  /** A limiter for each active rule, by name. */
  get limiters(): ReadonlyMap<string, Limiter> {
    return this.#rules.current.limiters;
  }

  /** Stops following a source of rules, whose last version stays active, and the store's breaker. Its names may be used again. */
  close(): void {
    openMiddlewares.delete(this);
    this.#rules.close();
    this.#client.guard.close();
  }

  /**
   * Decides a request. If this middleware has met the request before, only rules that have not checked it do: the app may have forwarded it
   * to another path, which has other rules.
   * @throws what functions of the app throw, always as an error. If all rules are in shadow mode, it throws nothing.
   */
  decide(request: Req): Promised<Outcome> {
    try {
      const outcome = this.#meet(request);
      return isPromise(outcome) ? outcome.then(undefined, (fault) => this.#fault(fault)) : outcome;
    } catch (fault) {
      return this.#fault(fault);
    }
  }

  /**
   * Decides the descriptors of one request to Envoy's rate limit service in one step: all limits of all descriptors allow and are charged,
   * or none is. For each descriptor it takes a request of which the reader tells the `descriptor`.
   * @throws as `decide` does.
   */
  decideDescriptors(requests: readonly Req[]): Promised<DescriptorsOutcome> {
    const fault = (error: unknown): DescriptorsOutcome => ({
      outcome: this.#fault(error),
      statuses: statusesOf(requests.length, [], unlimited),
    });
    try {
      const meetings = requests.map((request) => new Meeting(request, this, this.#settings));
      const asks = askDescriptors(meetings, this.#rules.current.rules.descriptors);
      const outcome = andThen<readonly DescriptorAsk<Req>[], DescriptorsOutcome>(asks, (all) => this.#decideAsks(meetings, all));
      return isPromise(outcome) ? outcome.then(undefined, fault) : outcome;
    } catch (error) {
      return fault(error);
    }
  }

  #decideAsks(meetings: readonly Meeting<Req>[], asks: readonly DescriptorAsk<Req>[]): Promised<DescriptorsOutcome> {
    const rules = asks.map(({ rule }) => rule);
    const asked = asks.map((ask) => ask.asked);
    this.#tellNotCounted(rules, asked);
    if (asked.includes("missing-key")) {
      const keyless = new Set(asks.filter((ask) => ask.asked === "missing-key").map(({ place }) => place));
      const statuses = meetings.map((_, place) => ({ allowed: !keyless.has(place), decision: undefined }));
      return { outcome: this.#rejectKeyless(rules, asked), statuses };
    }
    const shared = sharedChecks(asks);
    const meeting = meetings[0];
    if (meeting === undefined || shared.length === 0) return { outcome: unlimited, statuses: statusesOf(meetings.length, [], unlimited) };
    if (heard(this.#client.onEvent) !== undefined) meeting.askedMs = steadyMs();
    const checks = shared.map(({ check }) => check);
    return andThen<Outcome, DescriptorsOutcome>(this.#decideAll(meeting, checks, oncePerName), (outcome) => ({
      outcome,
      statuses: statusesOf(meetings.length, shared, outcome),
    }));
  }

  #meet(request: Req): Promised<Outcome> {
    const meeting = new Meeting(request, this, this.#settings);
    this.#settings.reader.showDecision?.(request, this.decisionName);
    if (this.#madePerRequest !== undefined) this.#noticeFirst(meeting);
    if (this.#proxyCheck !== undefined) this.#checkProxy(request);
    if (this.#skip === undefined) return this.#ask(meeting, this.#find(meeting));
    return andThen<unknown, Outcome>(this.#skip(request), (answer) =>
      yesOrNo(this.#where, "skip", answer, '(req) => req.path === "/health"') ? unlimited : this.#ask(meeting, this.#find(meeting)),
    );
  }

  /** The same version of the rules decides all of a request, even if another becomes active while functions of the app are pending. */
  #find(meeting: Meeting<Req>): readonly CompiledRule<Req>[] {
    const { http, index } = this.#rules.current.rules;
    const rules = index === undefined ? http : index.find(meeting);
    return meeting.earlier === undefined ? rules : rules.filter(({ name }) => !meeting.wasCheckedUnder(name));
  }

  #ask(meeting: Meeting<Req>, rules: readonly CompiledRule<Req>[]): Promised<Outcome> {
    if (rules.some(rejectsAmbiguousPath) && isAmbiguous(this.#settings.reader.path(meeting.request))) {
      return rejection(400, [noStore], ambiguousPath, undefined);
    }
    // Allocated in its full length, because an array that grows reserves too much memory.
    const asked = new Array<Promised<Asked<Req>>>(rules.length);
    let waits = false;
    try {
      for (let i = 0; i < asked.length; i++) {
        const answer = (rules[i] as CompiledRule<Req>).ask(meeting);
        asked[i] = answer;
        waits ||= isPromise(answer);
      }
    } catch (error) {
      abandon(asked);
      throw error;
    }
    return waits
      ? Promise.all(asked).then((all) => this.#decide(meeting, rules, all))
      : this.#decide(meeting, rules, asked as Asked<Req>[]);
  }

  #decide(meeting: Meeting<Req>, rules: readonly CompiledRule<Req>[], asked: readonly Asked<Req>[]): Promised<Outcome> {
    const checks = checksOf(asked);
    if (checks.length < asked.length) {
      this.#tellNotCounted(rules, asked);
      if (asked.includes("missing-key")) return this.#rejectKeyless(rules, asked);
    }
    const first = checks[0];
    if (first === undefined) return unlimited;
    meeting.rules = checks.length === rules.length ? rules : checks.map(({ rule }) => rule);
    if (this.#madePerRequest instanceof MadePerRequest) this.#madePerRequest.add(first.key, first.limit.name, this.#client.onEvent);
    if (meeting.before !== undefined || this.#doubleCounts.keepsLeft > 0) {
      this.#doubleCounts.notice(meeting, checks, this.#client.onEvent);
    }
    if (heard(this.#client.onEvent) !== undefined && this.#settings.reader.decisionEvents !== false) meeting.askedMs = steadyMs();
    if (checks.length > 1 || first.rule.ban !== undefined) return this.#decideAll(meeting, checks);
    const decision = this.#client.guard.consume(first.limit, first.key, first.cost);
    return isPromise(decision)
      ? decision.then((later) => this.#report(meeting, checks, single(first, later)))
      : this.#report(meeting, checks, single(first, decision));
  }

  /** @param shown which of the enforced decisions the response shows. */
  #decideAll(meeting: Meeting<Req>, all: readonly RuleCheck<Req>[], shown?: Shown): Promised<Outcome> {
    const checks = withoutVain(all);
    return andThen<readonly Decision[], Outcome>(this.#consume(checks), (decisions) =>
      this.#report(meeting, checks, combine(checks, decisions), shown),
    );
  }

  /**
   * Checks rules by their names, with keys and costs that the caller gives: all are charged, or none. What a rule says of requests (its match,
   * key and cost) does not apply. Its mode, exemptions and ban do.
   * @throws FloodgateError `FLOODGATE_UNKNOWN_RULE`, `FLOODGATE_INVALID_KEY` or `FLOODGATE_INVALID_COST`, and `FLOODGATE_DUPLICATE_NAME` if a
   * rule is named twice with the same key.
   */
  check(named: readonly NamedCheck[]): Promised<NamedDecisions> {
    const asked = namedRuleChecks<Req>(named, this.#rules.current);
    const checks = withoutVain(asked.filter((check) => check !== undefined));
    if (checks.length === 0) return { allowed: true, decision: undefined, checks: asked, decisions: asked.map(() => undefined) };
    const listener = heard(this.#client.onEvent);
    const askedMs = listener === undefined ? -1 : steadyMs();
    return andThen<readonly Decision[], NamedDecisions>(this.#consume(checks), (made) => {
      const { allowed, decision, all } = combine(checks, made);
      if (listener !== undefined) emitDecisions(listener, checks, all, { allowed, askedMs });
      const decisions = asked.map((check) => (check === undefined ? undefined : all[checks.indexOf(check)]));
      return { allowed, decision, checks: asked, decisions };
    });
  }

  #consume(checks: readonly RuleCheck<Req>[]): Promised<readonly Decision[]> {
    const { guard } = this.#client;
    const deadlineMs = guard.mode === "sync" ? 0 : runningMs() + guard.timeoutMs;
    const [first, second] = checks as readonly [RuleCheck<Req>, RuleCheck<Req>?];
    // A single rule with a ban takes the cheaper way of one limit.
    const answers: Promised<readonly Decision[]> =
      second === undefined && first.look !== true
        ? andThen<Decision, readonly Decision[]>(guard.consume(first.limit, first.key, first.cost), (decision) => [decision])
        : guard.consumeAll(checks);
    return andThen<readonly Decision[], readonly Decision[]>(answers, (answers) =>
      countTowardsBans(checks, answers, this.#client, deadlineMs),
    );
  }

  #report(meeting: Meeting<Req>, checks: readonly RuleCheck<Req>[], combined: CombinedDecision, shown?: Shown): Outcome {
    const { allowed, decision, all } = combined;
    meeting.decision = decision;
    // A listener that came while the store was asked first hears of the next request.
    const listener = meeting.askedMs >= 0 ? heard(this.#client.onEvent) : undefined;
    if (listener !== undefined) emitDecisions(listener, checks, all, { allowed, askedMs: meeting.askedMs });
    let watched = false;
    let mayChange = this.#refundWhen !== undefined;
    for (const { shadow, rule } of checks) {
      if (shadow === true) watched = true;
      if (rule.settle !== undefined) mayChange = true;
    }
    let enforced = watched ? all.filter((_, i) => checks[i]?.shadow !== true) : all;
    if (shown !== undefined) enforced = shown(enforced);
    const headers = this.#headersOf(meeting, enforced, decision, !allowed);
    if (!allowed) return this.#reject(headers, enforced, decision, checks, all);
    let delayMs = 0;
    for (const limit of enforced) if (limit.delayMs > delayMs) delayMs = limit.delayMs;
    const sent = mayChange ? afterwards(meeting.request, checks, all, this.#refundWhen, this.#client) : undefined;
    return { action: "pass", headers, decision, delayMs, status: 200, body: noBody, checks, decisions: all, sent };
  }

  /** No headers for a degraded decision, whose numbers are unknown. */
  #headersOf(meeting: Meeting<Req>, enforced: readonly Decision[], reported: Decision, rejected: boolean): Header[] {
    if (this.#writeHeaders === undefined || enforced.length === 0 || reported.degraded) return [];
    meeting.reported = reported;
    return this.#writeHeaders({ decisions: enforced, reported, meeting, rejected });
  }

  #reject(
    headers: Header[],
    enforced: readonly Decision[],
    decision: Decision,
    checks: readonly RuleCheck<Req>[],
    decisions: readonly Decision[],
  ): Outcome {
    const retryAfter = retryAfterSeconds(decision);
    if (retryAfter !== undefined) headers.push({ name: "Retry-After", value: `${retryAfter}`, list: false });
    headers.push(noStore);
    const unavailable = decision.degraded && this.#failsClosed;
    if (!unavailable && this.#body !== undefined) return rejection(429, headers, this.#body, decision, checks, decisions);
    const violated = enforced.filter(({ allowed }) => !allowed).map(({ name }) => name);
    if (unavailable) return rejection(503, headers, reducedCapacity(violated, retryAfter), decision, checks, decisions);
    return rejection(429, headers, quotaExceeded(violated, decision, retryAfter), decision, checks, decisions);
  }

  #tellNotCounted(rules: readonly CompiledRule<Req>[], asked: readonly Asked<Req>[]): void {
    const listener = heard(this.#client.onEvent);
    if (listener === undefined) return;
    asked.forEach((answer, i) => {
      const { name } = rules[i] as CompiledRule<Req>;
      if (answer === "exempt") listener({ type: "exempt", name });
      else if (answer === "missing-key" || answer === "no-key") {
        listener({ type: "missing-key", name, rejected: answer === "missing-key" });
      }
    });
  }

  #rejectKeyless(rules: readonly CompiledRule<Req>[], asked: readonly Asked<Req>[]): Outcome {
    const keyless = [...new Set(rules.filter((_, i) => asked[i] === "missing-key").map(({ name }) => name))];
    return rejection(429, [noStore], this.#body ?? quotaExceeded(keyless, undefined, undefined), undefined);
  }

  /** Called for the first requests, to find an app that makes a middleware for each request. */
  #noticeFirst(meeting: Meeting<Req>): void {
    const made = this.#madePerRequest;
    if (made === "new") {
      const app = this.#settings.reader.app?.(meeting.request);
      this.#madePerRequest = app === undefined ? undefined : madePerRequestOf(app);
    } else if (made !== undefined && meeting.earlier === undefined) {
      made.clear();
      this.#madePerRequest = undefined;
    }
  }

  /** Throws only if an enforced rule needs the address. A shadow rule warns when it reads the address. */
  #checkProxy(request: Req): void {
    const { readAddress, needAddress } = this.#rules.current.rules;
    if (!readAddress) return;
    try {
      this.#proxyCheck?.look(request);
    } catch (fault) {
      if (needAddress) throw fault;
    }
    if (this.#proxyCheck?.isDone) this.#proxyCheck = undefined;
  }

  #fault(fault: unknown): Outcome {
    if (!this.#rules.current.rules.areWatched) throwFault(fault);
    if (!this.#hasWarnedOfFault) {
      this.#hasWarnedOfFault = true;
      const message = `All rules are only watched (mode: "shadow"), so a request passed that they could not count. With mode: "enforce" this would be an error: ${reasonOf(fault).why}`;
      emitWarning(this.#client.onEvent, "FLOODGATE_WATCHED_RULE_FAILS", message);
    }
    return unlimited;
  }
}

const rejectsAmbiguousPath = (rule: { readonly rejectsAmbiguousPath: boolean }): boolean => rule.rejectsAmbiguousPath;

/** Which of the enforced decisions a response shows. */
type Shown = (decisions: readonly Decision[]) => readonly Decision[];

/** The checks among the answers. Returns the same list if all are checks, which is nearly always so. */
function checksOf<Req>(asked: readonly Asked<Req>[]): readonly RuleCheck<Req>[] {
  for (const answer of asked) if (typeof answer === "string") return asked.filter((answer) => typeof answer !== "string");
  return asked as readonly RuleCheck<Req>[];
}

/** An enforced limit of 0 rejects the request without the store, so the other limits need not be asked. */
function withoutVain<Req>(all: readonly RuleCheck<Req>[]): readonly RuleCheck<Req>[] {
  return hasZero(all) && all.some((check) => isZero(check) && check.shadow !== true) ? all.filter(isZero) : all;
}

/** The combined decision of a single check. */
function single<Req>({ shadow }: RuleCheck<Req>, decision: Decision): CombinedDecision {
  return { allowed: decision.allowed || shadow === true, decision, all: [decision] };
}
