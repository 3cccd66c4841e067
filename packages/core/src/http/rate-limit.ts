import { combine } from "../combine.js";
import type { CombinedDecision, Decision } from "../decision.js";
import { type EventListener, isTold, tell } from "../events.js";
import { guardStore } from "../failure/guard.js";
import { claimName, type Limiter } from "../limiter.js";
import { giveBack } from "../refund.js";
import { type CompiledRule, type Found, type Promised, TurnedAway } from "../rules/rule.js";
import { ruleLimiter } from "../rules/rule-limiter.js";
import { abandon, andThen, type Check, checkStore, isPromise, type Store } from "../store.js";
import { type Header, headerWriter, retryAfterSeconds } from "./headers.js";
import { quotaExceeded, reducedCapacity } from "./problem.js";
import { checkRateLimitOptions, decisionName, keySources, type RateLimitOptions, rulesOf } from "./rate-limit-options.js";
import type { RequestReader } from "./request-reader.js";
import { enter, type Visit } from "./visits.js";

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
  /** To be called with the response's status once it has been sent, where it may mean a refund. */
  readonly sent: ((status: number) => void) | undefined;
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
  /** One limiter a rule, by name. */
  readonly limiters: ReadonlyMap<string, Limiter>;
  readonly decisionName: string;
  readonly #guard: Store;
  /** Whether a request that the store cannot decide is turned away. */
  readonly #denies: boolean;
  readonly #reader: RequestReader<Req>;
  readonly #rules: readonly CompiledRule<Req>[];
  readonly #headers: ReturnType<typeof headerWriter>;
  readonly #skip: RateLimitOptions<Req>["skip"];
  readonly #refundWhen: RateLimitOptions<Req>["refundWhen"];
  readonly #onEvent: EventListener | undefined;

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
    this.decisionName = decisionName(where, options.decisionName);
    this.#reader = reader;
    this.#skip = options.skip;
    this.#refundWhen = options.refundWhen;
    this.#onEvent = options.onEvent;
    this.#headers = headerWriter(where, options.headers);
    this.store = options.store === undefined ? defaultStore(options.onEvent) : checkStore(where, options.store);
    this.#guard = guardStore(where, this.store, options);
    this.#denies = options.onStoreError === "deny";
    const sources = keySources(where, options, reader);
    this.#rules = rulesOf(where, options, sources);
    for (const rule of this.#rules) claimName(where, this.store, rule.name, rule.meaning);
    this.limiters = new Map(this.#rules.map((rule) => [rule.name, ruleLimiter(this.store, this.#guard, rule, options.onEvent)]));
  }

  /** Decides a request; one that this middleware has met before is not charged again. */
  decide(request: Req): Promised<Outcome> {
    const visit = enter(this.#reader.identity(request), this, this.#reader.plainIdentity === true);
    if (visit === undefined) return unlimited;
    const skip = this.#skip === undefined ? false : this.#skip(request);
    if (isPromise(skip)) return skip.then((skipped) => (skipped ? unlimited : this.#limit(request, visit)));
    return skip ? unlimited : this.#limit(request, visit);
  }

  #limit(request: Req, visit: Visit): Promised<Outcome> {
    // As long as it will be from the start: one that grows makes room for many, at each request.
    const found = new Array<Promised<Found>>(this.#rules.length);
    let promised = false;
    try {
      for (let i = 0; i < found.length; i++) {
        const rule = this.#rules[i] as CompiledRule<Req>;
        const isFor = rule.matcher === undefined || rule.matcher.fits(this.#reader.method(request), this.#reader.path(request));
        const one = isFor ? rule.check(request) : undefined;
        promised ||= isPromise(one);
        found[i] = one;
      }
    } catch (error) {
      abandon(found);
      throw error;
    }
    if (promised) return Promise.all(found).then((all) => this.#ask(visit, all));
    return this.#ask(visit, found as Found[]);
  }

  #ask(visit: Visit, found: readonly Found[]): Promised<Outcome> {
    const checks = found.every(isCheck) ? found : found.filter(isCheck);
    const keyless = checks === found ? [] : found.filter((one) => one instanceof TurnedAway).map(({ name }) => name);
    if (keyless.length > 0) return reject(429, [noStore], quotaExceeded(keyless, undefined), undefined);
    const only = checks[0];
    if (only === undefined) return unlimited;
    if (checks.length > 1)
      return andThen(this.#guard.consumeAll(checks), (all: Decision[]) => this.#outcome(visit, checks, combine(checks, all)));
    return andThen(this.#guard.consume(only.limit, only.key, only.cost), (decision: Decision) =>
      this.#outcome(visit, checks, { allowed: decision.allowed || only.shadow === true, decision, all: [decision] }),
    );
  }

  #outcome(visit: Visit, checks: readonly Check[], combined: CombinedDecision): Outcome {
    const { allowed, decision, all } = combined;
    visit.decision = decision;
    if (this.#onEvent !== undefined) this.#tell(checks, combined, this.#onEvent);
    const decisions = enforced(checks, all);
    // What was decided without the store tells nothing of it.
    const told = decisions.length > 0 && !decision.degraded;
    const headers = told ? this.#headers({ decisions, reported: decision, visit, rejected: !allowed }) : [];
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
    const sent = this.#refundWhen === undefined ? undefined : this.#settle(this.#refundWhen, checks, all);
    return { action: "pass", headers, decision, delayMs, status: 200, body: "", sent };
  }

  #tell(checks: readonly Check[], { allowed, all }: CombinedDecision, onEvent: EventListener): void {
    checks.forEach(({ key, shadow }, i) => {
      const decision = all[i] as Decision;
      if (isTold(decision, allowed)) tell(onEvent, key, decision, shadow === true);
    });
  }

  /** What is done once the response has been sent. It is gone then, so a fault can be told to nobody but who listens. */
  #settle(refundWhen: (status: number) => boolean, checks: readonly Check[], all: readonly Decision[]): (status: number) => void {
    const fault = (error: unknown): void => this.#onEvent?.({ type: "refund-failed", error });
    return (status) => {
      try {
        if (refundWhen(status) !== true) return;
        checks.forEach(({ limit, key }, i) => {
          const units = giveBack(this.#guard, limit, key, all[i] as Decision, this.#onEvent);
          if (isPromise(units)) units.then(undefined, fault);
        });
      } catch (error) {
        fault(error);
      }
    };
  }
}

function isCheck(found: Found): found is Check {
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
