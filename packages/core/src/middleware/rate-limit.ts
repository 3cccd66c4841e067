import type { CombinedDecision } from "../decide/decision.js";
import { decideWithZeros, decisiveChecks } from "../decide/zero-limits.js";
import { emitDecisions, emitNotCounted, emitRequest, timeOfAsking } from "../events/decision-events.js";
import { observation } from "../events/listeners.js";
import { isAmbiguous } from "../requests/path.js";
import { RequestContext } from "../requests/request-context.js";
import { ambiguous, clientGone, type DecisionFilter, type Outcome, unlimited, withHeader } from "../responses/outcome.js";
import type { Version } from "../rules/active-rules.js";
import { decideWithBans } from "../rules/bans.js";
import { type Asked, type CompiledRule, type RuleCheck, shadowFault } from "../rules/compiled-rule.js";
import { type FloodgateError, throwFault } from "../support/errors.js";
import { yesOrNo } from "../support/options.js";
import { abandon, andThen, type Promised } from "../support/promises.js";
import { RateLimitSetup } from "./rate-limit-setup.js";

/**
 * A middleware without its framework. The constructor checks the options. Then `decide` takes a request and returns an outcome; it returns a
 * promise only if a function of the app or the store does.
 *
 * The way of a request: make its context, find the rules that match, ask each rule for its check, decide all checks in the store, report.
 */
export class RateLimit<Req> extends RateLimitSetup<Req> {
  /**
   * Decides a request. If this middleware has let the request pass before, the rules that checked it then are left out: the app may have
   * forwarded it to another path, which has other rules.
   * @throws what a function of the app or a store without `onStoreError` throws, always as an error; or rejects with it. If all rules are in
   * shadow mode, it throws nothing.
   */
  decide(request: Req): Promised<Outcome> {
    const version = this.rules.current;
    // Undefined if the reader fails.
    let made: RequestContext<Req> | undefined;
    try {
      const context = new RequestContext(request, this, this.settings);
      made = context;
      this.observer?.sees(context, version.rules);
      const outcome =
        this.skip === undefined
          ? this.#ask(context, version)
          : andThen<unknown, Outcome>(this.skip(request), (skips) =>
              yesOrNo(this.where, "skip", skips, '(req) => req.path === "/health"')
                ? this.#pass(context, "skipped")
                : this.#ask(context, version),
            );
      // `in` in place of `isPromise` saves a call. It is done so on the whole way of a request.
      if (!("then" in outcome)) return context.extraHeader === undefined ? outcome : withHeader(outcome, context.extraHeader);
      return outcome.then(
        (later) => (context.extraHeader === undefined ? later : withHeader(later, context.extraHeader)),
        (fault) => this.fault(fault, version, context),
      );
    } catch (fault) {
      return this.fault(fault, version, made);
    }
  }

  /** For a request that is not decided as a whole. */
  contextOf(request: Req): RequestContext<Req> {
    return new RequestContext(request, this, this.settings);
  }

  #ask(context: RequestContext<Req>, version: Version<Req>): Promised<Outcome> {
    const { index, http, mayRejectPath } = version.rules;
    let rules = index === undefined ? http : index.find(context);
    if (context.previousHere !== undefined) rules = rules.filter(({ name }) => !context.wasCheckedUnder(name));
    const rejecting = mayRejectPath ? rules.find(({ rejectsAmbiguousPath }) => rejectsAmbiguousPath) : undefined;
    if (rejecting !== undefined && isAmbiguous(this.settings.reader.path(context.request))) {
      emitRequest(this.requestListener, "ambiguous-path", rejecting.name, context);
      return ambiguous;
    }
    // Allocated in its full length, because an array that grows reserves too much memory.
    const asked = new Array<Promised<Asked<Req>>>(rules.length);
    let waits = false;
    try {
      for (let i = 0; i < asked.length; i++) {
        const answer = (rules[i] as CompiledRule<Req>).ask(context);
        asked[i] = answer;
        waits ||= typeof answer === "object" && "then" in answer;
      }
    } catch (error) {
      abandon(asked);
      throw error;
    }
    if (waits) return Promise.all(asked).then((all) => this.decideAsked(context, version, rules, all));
    return this.decideAsked(context, version, rules, asked as Asked<Req>[]);
  }

  /**
   * Decides what rules have asked for a request.
   * @param filter picks the enforced decisions that the response shows. Default: all.
   */
  decideAsked(
    context: RequestContext<Req>,
    version: Version<Req>,
    rules: readonly CompiledRule<Req>[],
    asked: readonly Asked<Req>[],
    filter?: DecisionFilter,
  ): Promised<Outcome> {
    let checks = asked as readonly RuleCheck<Req>[];
    let countAll = true;
    for (const answer of asked) if (typeof answer === "string") countAll = false;
    if (!countAll) {
      emitNotCounted(this.listener, rules, asked);
      const keyless = rules.filter((_, i) => asked[i] === "missing-key").map(({ name }) => name);
      if (keyless.length > 0) {
        emitRequest(this.requestListener, "missing-key", keyless[0], context);
        return this.responder.rejectKeyless(keyless);
      }
      checks = asked.filter((answer) => typeof answer !== "string");
    }
    if (checks.length === 0) {
      const exempt = asked.indexOf("exempt");
      return this.#pass(context, exempt < 0 ? "uncounted" : "exempt", rules[exempt]?.name);
    }
    this.observer?.counts(context, checks);
    if ((this.client.onEvent ?? observation.tell) !== undefined && this.settings.reader.decisionEvents !== false)
      context.storeAskedMs = timeOfAsking(this.client.guard);
    // If an enforced limit is 0, the request is rejected without asking the store about the others.
    const { hasBans, mayBeZero } = version.rules;
    if (mayBeZero) checks = decisiveChecks(checks);
    context.rules = checks.length === rules.length ? rules : checks.map(({ rule }) => rule);
    // The guard decides all checks in one atomic step of the store, which rejects banned keys by itself. Then each rejection by a rule with a
    // `ban` is counted in the store, and the one that completes the number begins a ban.
    const { client } = this;
    const combined = hasBans
      ? decideWithBans(checks, client, mayBeZero)
      : mayBeZero
        ? decideWithZeros(checks, client.guard)
        : client.guard.decide(checks);
    return "then" in combined
      ? combined.then((later) => this.#report(context, checks, later, filter))
      : this.#report(context, checks, combined, filter);
  }

  #report(
    context: RequestContext<Req>,
    checks: readonly RuleCheck<Req>[],
    combined: CombinedDecision,
    filter: DecisionFilter | undefined,
  ): Outcome {
    context.decision = combined.decision;
    // A listener that was added while the store was asked gets the events of later requests.
    if (context.storeAskedMs >= 0) emitDecisions(this.listener, checks, combined, context.storeAskedMs, context);
    // It was not charged, so it may be decided again. Listeners have seen its rules.
    if (!combined.allowed) context.rules = [];
    return this.responder.outcomeOf(context, checks, combined, filter);
  }

  /** Lets a request pass that no rule has counted. */
  #pass(context: RequestContext<Req> | undefined, result: "skipped" | "exempt" | "uncounted", name?: string): Outcome {
    emitRequest(this.requestListener, result, name, context);
    return unlimited;
  }

  /**
   * What a fault of a function of the app leads to. @throws it, unless all rules are in shadow mode, or the client has left and its address
   * with it: nobody receives the answer.
   */
  fault(fault: unknown, version: Version<Req>, context?: RequestContext<Req>): Outcome {
    if (!version.rules.allShadow) {
      const isNoIp = (fault as Partial<FloodgateError> | null)?.code === "FLOODGATE_NO_CLIENT_IP";
      return isNoIp && context !== undefined && this.settings.reader.hasLeft?.(context.request) ? clientGone : throwFault(fault);
    }
    this.warn("FLOODGATE_SHADOW_RULE_FAILS", shadowFault("All rules are", fault));
    return this.#pass(context, "uncounted");
  }
}
