import { combine } from "../combine.js";
import type { CombinedDecision, Decision } from "../decision.js";
import { FloodgateError, shown } from "../errors.js";
import { type EventListener, isTold, tell } from "../events.js";
import { type FailureOptions, failureWords } from "../failure/failure-options.js";
import { guardStore } from "../failure/guard.js";
import { claimName, type Limiter } from "../limiter.js";
import { checkOptions, functionOrNothing, wholeNumber } from "../options.js";
import { giveBack } from "../refund.js";
import type { KeyFunction, KeySources } from "../rules/key-source.js";
import {
  CompiledRule,
  compileRules,
  type Found,
  type LimitOptions,
  limitWords,
  type Promised,
  type Rule,
  TurnedAway,
} from "../rules/rule.js";
import { ruleLimiter } from "../rules/rule-limiter.js";
import { abandon, andThen, type Check, checkStore, isPromise, type Store } from "../store.js";
import { type ClientIpOption, clientIpResolver } from "./client-ip.js";
import { type Header, type HeadersOption, headerWriter, retryAfterSeconds } from "./headers.js";
import { ipKey } from "./ip.js";
import { quotaExceeded, reducedCapacity } from "./problem.js";
import { frameworkIp } from "./proxy-warning.js";
import { enter, type Visit } from "./visits.js";

/** How a framework's request is read: all that an adapter has to say about it. */
export interface RequestReader<Req> {
  /** An object that is the same for one HTTP request however often it is met. */
  identity(request: Req): object;
  /** Whether that object takes a new property as cheaply as most do: not one whose prototype the framework has changed. */
  readonly plainIdentity?: boolean;
  method(request: Req): string;
  /** The full path, mounts included. */
  path(request: Req): string;
  /** A header's value, several lines joined by ", ". */
  header(request: Req, lowerCaseName: string): string | undefined;
  /** The address at the other end of the connection. */
  remoteAddress(request: Req): string | undefined;
  /** The client's address as the framework's own proxy setting sees it; throws where that setting is forgeable. */
  clientIp(request: Req): string | undefined;
  /** Whether that setting believes what a proxy says of the client; always so where no proxy can be missing. */
  trustsProxy(request: Req): boolean;
  /** The pattern that matched, where the framework knows it, mounts included if it knows those. */
  route(request: Req): string | undefined;
}

/** The options of `rateLimit` that mean the same in every framework. `keys` alone says which names there are. */
export interface RateLimitOptions<Req, Own extends string = never> extends LimitOptions<Req, NoInfer<Own>>, FailureOptions {
  /** Stands in headers, keys and events; one name on one store is one count. Default `"default"`. */
  name?: string;
  /** Several limits, checked in one atomic step. */
  rules?: readonly Rule<Req, NoInfer<Own>>[];
  /** The keys that `key` and rules name. */
  keys?: Readonly<Record<Own, KeyFunction<Req>>>;
  /** Default: a memory store of this middleware's own. */
  store?: Store;
  /** Requests that are not limited at all. */
  skip?: (request: Req) => Promised<boolean>;
  /** Default `"standard"`. */
  headers?: HeadersOption;
  /** Whether to give back what a request took, by its response's status; 499 where the client went away before it was sent. */
  refundWhen?: (status: number) => boolean;
  /** Where the client's address comes from; default: the framework's own proxy setting. */
  clientIp?: ClientIpOption<Req>;
  /** How many leading bits of an IPv6 address make one client, 1 to 128; default 56. */
  ipv6Prefix?: number;
  /** What the decision is called where handlers find it: the request, the state or the context. Default `"rateLimit"`. */
  decisionName?: string;
  onEvent?: EventListener;
}

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

const words = [
  "name",
  ...limitWords,
  ...failureWords,
  "rules",
  "keys",
  "store",
  "skip",
  "headers",
  "refundWhen",
  "clientIp",
  "ipv6Prefix",
  "decisionName",
  "onEvent",
];

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
    checkOptions(where, options, [...words, ...own], 'rateLimit({ limit: 100, window: "1m" })');
    functionOrNothing(where, "skip", options.skip, '(req) => req.path === "/health"');
    functionOrNothing(where, "refundWhen", options.refundWhen, "(status) => status < 400");
    functionOrNothing(where, "onEvent", options.onEvent, "(event) => console.log(event)");
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

function decisionName(where: string, name: unknown): string {
  if (name === undefined) return "rateLimit";
  if (typeof name === "string" && /^[A-Za-z_$][\w$]*$/.test(name) && name !== "__proto__") return name;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`decisionName\` must be a word that can name a property, but was ${shown(name)}. Write decisionName: "rateLimit".`,
  );
}

function keySources<Req>(where: string, options: RateLimitOptions<Req, string>, reader: RequestReader<Req>): KeySources<Req> {
  const prefix = options.ipv6Prefix === undefined ? 56 : wholeNumber(where, "ipv6Prefix", options.ipv6Prefix, 1, 56);
  if (prefix > 128) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`ipv6Prefix\` must be 1 to 128 bits, but was ${prefix}. Write ipv6Prefix: 56.`,
    );
  }
  const keys = options.keys ?? {};
  for (const [name, key] of Object.entries(keys)) {
    functionOrNothing(where, `keys.${name}`, key, "(req) => req.user?.id");
    if (["ip", "route", "global"].includes(name) || name.startsWith("header:")) {
      throw new FloodgateError(
        "FLOODGATE_CONFLICTING_OPTIONS",
        `${where}: \`keys\` cannot define ${shown(name)} anew. Give it another name.`,
      );
    }
  }
  const resolve: KeySources<Req>["ip"] =
    options.clientIp === undefined
      ? frameworkIp(reader, options.onEvent)
      : clientIpResolver<Req>(where, options.clientIp, reader.remoteAddress, reader.header);
  const normalised = (ip: string | undefined): string | undefined => (ip === undefined ? undefined : ipKey(ip, prefix));
  return {
    keys,
    ip: (request) => {
      const ip = resolve(request);
      return isPromise(ip) ? ip.then(normalised) : normalised(ip);
    },
    path: (request) => reader.path(request),
    route: (request) => reader.route(request),
    header: (request, name) => reader.header(request, name),
  };
}

function rulesOf<Req>(where: string, options: RateLimitOptions<Req, string>, sources: KeySources<Req>): CompiledRule<Req>[] {
  const { rules, name, limit, window, policy, ...defaults } = options;
  if (rules === undefined) return [new CompiledRule(where, { ...options, name: name ?? "default" }, sources)];
  const beside = Object.entries({ limit, window, policy, name }).filter(([, value]) => value !== undefined);
  if (beside.length > 0) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: with \`rules\` each rule says its own name and limit, so \`${beside.map(([word]) => word).join("`, `")}\` cannot stand beside them.`,
    );
  }
  const { key, cost, mode, onMissingKey } = defaults;
  const shared = Object.fromEntries(Object.entries({ key, cost, mode, onMissingKey }).filter(([, value]) => value !== undefined));
  const filled = Array.isArray(rules)
    ? rules.map((rule) => (typeof rule === "object" && rule !== null ? { ...shared, ...rule } : rule))
    : rules;
  return compileRules(where, filled, sources);
}
