import { FloodgateError, shown } from "../errors.js";
import type { EventListener } from "../events.js";
import { type FailureOptions, failureWords } from "../failure/failure-options.js";
import { ipKey } from "../ip.js";
import { checkOptions, functionOrNothing, wholeNumber } from "../options.js";
import { CompiledRule, type RuleContext } from "../rules/compiled-rule.js";
import { compileRules } from "../rules/compiled-rules.js";
import type { CostFunction } from "../rules/cost.js";
import { compileExempt } from "../rules/exempt.js";
import { isBuiltInKey, type KeyFunction, type KeySources } from "../rules/key-source.js";
import { type LimitOptions, limitWords, type Promised, type Rule } from "../rules/rule.js";
import type { RuleSource } from "../rules/source.js";
import { isPromise, type Store } from "../store.js";
import { type ClientIpOption, clientIpResolver } from "./client-ip.js";
import type { HeadersOption } from "./headers.js";
import { frameworkIp } from "./proxy-warning.js";
import type { RequestReader } from "./request-reader.js";

/** The options of `rateLimit` that mean the same in every framework. `keys` alone says which names there are. */
export interface RateLimitOptions<Req, Own extends string = never> extends LimitOptions<Req, NoInfer<Own>>, FailureOptions {
  /** Stands in headers, keys and events; one name on one store is one count. Default `"default"`. */
  name?: string;
  /** Several limits, checked in one atomic step; or a source of rules that change while the server runs. */
  rules?: readonly Rule<Req, NoInfer<Own>>[] | RuleSource;
  /** The keys that `key` and rules name. */
  keys?: Readonly<Record<Own, KeyFunction<Req>>>;
  /** The costs that `cost` and `settle` name. */
  costs?: Readonly<Record<string, CostFunction<Req>>>;
  /** The name of a request's plan, for rules with `plans`; undefined where it has none. */
  plan?: (request: Req) => Promised<string | undefined>;
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

const words = [
  "name",
  ...limitWords,
  ...failureWords,
  "rules",
  "keys",
  "costs",
  "plan",
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
 * Refuses words that mean nothing, and functions that are none.
 * @param own the adapter's own options, which are its to check.
 */
export function checkRateLimitOptions<Req>(where: string, options: RateLimitOptions<Req, string>, own: readonly string[]): void {
  if (typeof options === "object" && options !== null && "match" in options) {
    throw new FloodgateError(
      "FLOODGATE_UNKNOWN_OPTION",
      `${where} has no option \`match\`: that is a rule's. Write rules: [{ name: "posts", match: { path: "/posts" }, limit: 100, window: "1m" }].`,
      { at: ["match"] },
    );
  }
  checkOptions(where, options, [...words, ...own], 'rateLimit({ limit: 100, window: "1m" })');
  functionOrNothing(where, "skip", options.skip, '(req) => req.path === "/health"');
  functionOrNothing(where, "plan", options.plan, "(req) => req.user?.plan");
  functionOrNothing(where, "refundWhen", options.refundWhen, "(status) => status < 400");
  functionOrNothing(where, "onEvent", options.onEvent, "(event) => console.log(event)");
}

/** The name under which handlers find the decision. */
export function decisionName(where: string, name: unknown): string {
  if (name === undefined) return "rateLimit";
  if (typeof name === "string" && /^[A-Za-z_$][\w$]*$/.test(name) && name !== "__proto__") return name;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`decisionName\` must be a word that can name a property, but was ${shown(name)}. Write decisionName: "rateLimit".`,
  );
}

/** Where the keys of a middleware's rules come from. */
export function keySources<Req>(where: string, options: RateLimitOptions<Req, string>, reader: RequestReader<Req>): KeySources<Req> {
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
    if (isBuiltInKey(name)) {
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
    address: resolve,
    ip: (request) => {
      const ip = resolve(request);
      return isPromise(ip) ? ip.then(normalised) : normalised(ip);
    },
    path: (request) => reader.path(request),
    route: (request) => reader.route(request),
    header: (request, name) => reader.header(request, name),
  };
}

/** What the rules of a middleware share. */
export function ruleContext<Req>(where: string, options: RateLimitOptions<Req, string>, reader: RequestReader<Req>): RuleContext<Req> {
  const costs = options.costs ?? {};
  for (const [name, cost] of Object.entries(costs)) functionOrNothing(where, `costs.${name}`, cost, "(req) => req.body.items.length");
  return {
    sources: keySources(where, options, reader),
    costs,
    plan: options.plan,
    exempt: options.rules === undefined ? [] : compileExempt(where, options.exempt),
  };
}

/** The one rule that a middleware's own options make. */
export function ownRule<Req>(where: string, options: RateLimitOptions<Req, string>, context: RuleContext<Req>): CompiledRule<Req> {
  return new CompiledRule(where, { ...options, name: options.name === undefined ? "default" : options.name }, context);
}

/**
 * The rules that a middleware is given, each with what its own options say for all of them.
 * @throws FloodgateError where those say what only a rule can.
 */
export function givenRules<Req>(
  where: string,
  options: RateLimitOptions<Req, string>,
  rules: readonly Rule<Req, string>[],
  context: RuleContext<Req>,
): CompiledRule<Req>[] {
  const { name, limit, window, policy, plans, key, cost, settle, mode, onMissingKey, ban } = options;
  const beside = given({ limit, window, policy, plans, name });
  if (beside.length > 0) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: with \`rules\` each rule says its own name and limit, so \`${beside.map(([word]) => word).join("`, `")}\` cannot stand beside them.`,
    );
  }
  const shared = Object.fromEntries(given({ key, cost, settle, mode, onMissingKey, ban }));
  const isRule = (rule: unknown): rule is object => typeof rule === "object" && rule !== null;
  const fill = (rule: object): object => ({ ...shared, ...Object.fromEntries(given({ ...rule })) });
  const filled = Array.isArray(rules) ? rules.map((rule) => (isRule(rule) ? fill(rule) : rule)) : rules;
  return compileRules(where, filled, context);
}

function given(options: Readonly<Record<string, unknown>>): [string, unknown][] {
  return Object.entries(options).filter(([, value]) => value !== undefined);
}
