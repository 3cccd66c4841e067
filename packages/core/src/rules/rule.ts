import type { Policy, PolicyOptions } from "../algorithms/registry.js";
import type { EventListener, RulesEvent } from "../events/events.js";
import { type Warn, warner } from "../events/listeners.js";
import type { CostFunction, KeyFunction } from "../requests/functions.js";
import { ipv6PrefixOption, type RequestOptions } from "../requests/request-options.js";
import type { RequestReader } from "../requests/request-reader.js";
import type { Duration } from "../support/duration.js";
import { conflict, shown, wrongOption } from "../support/errors.js";
import type { Promised } from "../support/promises.js";
import type { BanOptions } from "./bans.js";
import type { Costs, RefundOption } from "./cost.js";
import type { DescriptorRules } from "./descriptor-rule.js";
import { type CompiledExempt, compileExempt, type Exempt } from "./exempt.js";
import { isBuiltInKey, type KeyNames, type KeyOption } from "./key-source.js";
import type { Match } from "./match.js";
import type { Grant, PlanOptions } from "./plans.js";
import { keyDigests } from "./secret-keys.js";

/**
 * What happens to a request without a key. `"ip"` counts it by its IP address, apart from all keys; a limiter names that client
 * `{ missingKeyIp: "203.0.113.9" }`. `"skip"` does not count it, `"reject"` answers 429, and `"error"` fails the request.
 */
export type OnMissingKey = "ip" | "skip" | "reject" | "error";

/** The options of a rule, and of a middleware with a single limit. */
export interface LimitOptions<Req, Own extends string = never> {
  /** The maximum number of units in a window. With `window`, short for `policy: slidingWindowCounter({ limit, window })`. */
  limit?: number;
  /** The length of a window: `"1m"`. */
  window?: Duration;
  /** A policy, or a function that returns the policy of a request. */
  policy?: Policy | PolicyOptions | ((request: Req) => Promised<Policy | PolicyOptions>);
  /** Other limits for plans, by name: `{ pro: { limit: 1000 } }`. The middleware's `plan` returns the plan of a request. */
  plans?: Readonly<Record<string, PlanOptions>>;
  /** What to count by: `"ip"` (default), `"global"`, `"route"`, `"header:x-user"`, a name in `keys`, a tuple of those, or a function. */
  key?: KeyOption<Req, Own>;
  /** What happens to a request without a key. Default `"ip"`; for `key: "ip"` itself `"error"`. */
  onMissingKey?: OnMissingKey;
  /**
   * The units that a request uses: a whole number, a function, or the name of one of the middleware's `costs`. A cost of 0 is not counted.
   * Default 1.
   */
  cost?: number | string | CostFunction<Req>;
  /**
   * The units that a request has really used, known after its response: a function, or the name of one of the middleware's `costs`. The
   * difference to `cost` is charged or refunded. Undefined changes nothing. If it returns a promise, a client that disconnects early still
   * pays the final cost.
   */
  settle?: string | CostFunction<Req>;
  /**
   * Sets the units of a request aside, for at most this time: `"60s"`. They count against the limit, and are not used yet. When the response
   * ends, `settle` says what is charged in their place; without an answer `cost` is. If the process dies, they come back by themselves and
   * cost nothing. Not with `concurrency`, `leakyBucket` and `countRejected`.
   */
  hold?: Duration;
  /** `"shadow"` counts and sends events, but rejects nothing and adds no headers. Default `"enforce"`. */
  mode?: "enforce" | "shadow";
  /**
   * What happens to a request whose path servers read in ways that no list exhausts: it has a dot segment, a backslash, a control character or
   * a byte that is not UTF-8, in any spelling; or two of an empty segment, an encoded slash, a `;`, and a dot or space at the end of a segment.
   * `"count"` (default) counts it under each path that it may lead to, `"reject"` answers 400.
   */
  ambiguousPath?: "count" | "reject";
  /** Clients and keys that this limit does not count: `{ ips: ["10.0.0.0/8"] }`. */
  exempt?: Exempt;
  /** Bans a key after repeated rejections: `{ after: 5, within: "1m", for: "1h" }`. */
  ban?: BanOptions;
  /**
   * Whether this process takes units of a busy key ahead, in one step, and spends them without asking the store. Default: as the store is
   * set up. Only a Redis store leases. Not with `leakyBucket` and `countRejected`.
   */
  lease?: boolean;
}

/** One of several limits: its name, which requests it counts, by what key, and its policy. */
export interface Rule<Req, Own extends string = never> extends LimitOptions<Req, Own> {
  /** Unique among the rules: 1 to 128 printable ASCII characters. */
  name: string;
  /** The requests that the rule counts. Default: every request. */
  match?: Match | ((request: Req) => Promised<boolean>);
  /** `false`: the response headers do not show this limit. */
  headers?: boolean;
  /** Keys that have another plan until a time: `[{ key: "42", plan: "pro", until: "2027-01-31" }]`. It comes before the plan of the request. */
  grants?: readonly Grant[];
  /** Whether to refund what a request took of this limit, by its response status. Default: as the middleware. */
  refundWhen?: RefundOption;
}

/** A rule from a file or a config database. Where code has functions, it has names that the app defines. */
export interface PlainRule extends Readonly<Omit<LimitOptions<unknown>, "policy" | "key" | "cost" | "settle">> {
  readonly name: string;
  readonly match?: Match;
  readonly policy?: PolicyOptions;
  readonly key?: string | readonly string[];
  readonly cost?: number | string;
  readonly settle?: string;
  readonly headers?: boolean;
  readonly grants?: readonly Grant[];
  readonly refundWhen?: string;
}

/** What a limit option means if the middleware also has `rules`: an error, a default for the rules, or an addition to them. */
type MeaningWithRules = "error" | "default" | "addition";

/** All limit options, and what each means with `rules`. */
export const meaningWithRules: Readonly<Record<string, MeaningWithRules>> = {
  limit: "error",
  window: "error",
  policy: "error",
  plans: "error",
  key: "default",
  onMissingKey: "default",
  cost: "default",
  settle: "default",
  hold: "default",
  mode: "default",
  ambiguousPath: "default",
  exempt: "addition",
  ban: "default",
  lease: "default",
} satisfies Record<keyof LimitOptions<unknown>, MeaningWithRules>;

export const limitOptionNames: readonly string[] = Object.keys(meaningWithRules);

/** One version of the rules from a file or a config database: plain data without functions. */
export interface RuleSet {
  readonly rules: readonly PlainRule[];
  /** Clients that no rule of this version counts. */
  readonly exempt?: Exempt;
}

/** A grant that begins, or ends if it has no plan. */
export interface GrantChange {
  readonly rule: string;
  /** The key's text, as events show it. */
  readonly key: string;
  readonly grant: Omit<Grant, "key"> | undefined;
  /** The same text of a key that a grant was written with, which may be a secret in plain text. Default: texts are compared as written. */
  textOf?(written: Grant["key"]): string;
  /** Who grants, for the event. */
  readonly by?: string | undefined;
}

/** Why a version of the rules was refused, and when, in milliseconds since the epoch. */
export interface Refusal {
  readonly error: unknown;
  readonly atMs: number;
}

/**
 * Rules that change while the server runs. A new version is activated in two steps: every user prepares it; if none refuses it, all users
 * activate it. If one refuses it, the previous version stays active for all.
 */
export interface RuleSource {
  /** The active version. */
  readonly current: RuleSet;
  /** Where the rules come from: a file's path, a Redis key. For people. */
  readonly name?: string;
  /** The source's name for the active version. */
  readonly version?: string;
  /** The refusal of the newest version; undefined if the newest version is active. */
  readonly refused?: Refusal | undefined;
  /** When the active version was last read and found good, in milliseconds since the epoch. */
  readonly loadedAtMs?: number;
  /**
   * Gives a key of a rule another plan until a time, in all processes; without a plan, ends its grant. Undefined if the source cannot be
   * written. It resolves when this process uses the new version.
   */
  grant?(change: GrantChange): Promise<void>;
  /** Adds a user, which prepares each version after `current`. Returns a function that removes it. */
  subscribe(user: RuleUser): () => void;
  /**
   * Adds positions (file and line) to an error that `prepare` threw for `current`, if the source knows them. Default: the error itself.
   */
  explain?(refusal: unknown): unknown;
}

/** A user of rules: a middleware. */
export interface RuleUser {
  /**
   * Compiles a version. Returns a function that activates it, which must not fail.
   * @throws FloodgateError if this user refuses it: its app lacks a key, for example. `at` is the path in the version.
   */
  prepare(rules: RuleSet): () => void;
  /** Receives the events of versions; missing if nobody listens. */
  readonly tell?: ((event: RulesEvent) => void) | undefined;
}

export function isRuleSource(value: unknown): value is RuleSource {
  return typeof value === "object" && value !== null && typeof (value as { subscribe?: unknown }).subscribe === "function";
}

/** The options of a middleware that concern its rules. `keys` alone defines the names of keys. */
export interface RulesOptions<Req, Own extends string = never> extends LimitOptions<Req, NoInfer<Own>>, RequestOptions<Req> {
  /** The limit's name in headers, store keys and events. Limits of one name on one store share a count. Default `"default"`. */
  name?: string;
  /** Several limits, checked in one atomic step; or a source of live rules, such as `await fileRules("limits.yaml")`. */
  rules?: readonly Rule<Req, NoInfer<Own>>[] | RuleSource;
  /** The keys that `key` and rules refer to by name. Each function runs once per request, however many rules use it. */
  keys?: Readonly<Record<Own, KeyFunction<Req>>>;
  /** The costs that `cost` and `settle` refer to by name. Each function runs once per request, however many rules use it. */
  costs?: Readonly<Record<string, CostFunction<Req>>>;
  /**
   * Makes the digests of secret keys HMACs. At least 32 characters, the same in every process. Without it, digests are plain SHA-256, which
   * does not protect values that can be guessed, such as passwords and short tokens.
   */
  keySecret?: string;
}

/** What the rules of one middleware share when they are compiled: the names that they may use, and the clients that no rule counts. */
export interface RuleSettings<Req> extends KeyNames<Req> {
  readonly costs: Costs<Req>;
  /** Whether the app tells each request's plan. */
  readonly hasPlan: boolean;
  readonly ipv6Prefix: number;
  readonly exempt: readonly CompiledExempt[];
  /** For rules that count descriptors of Envoy's rate limit service. Undefined if only HTTP requests are limited. */
  readonly descriptors: DescriptorRules | undefined;
  readonly checkRule: RequestReader<Req>["checkRule"];
  readonly cost: RequestReader<Req>["cost"];
  readonly warn: Warn;
}

export function ruleSettings<Req>(
  where: string,
  options: RulesOptions<Req, string>,
  { descriptors, checkRule, cost }: Pick<RequestReader<Req>, "descriptors" | "checkRule" | "cost">,
  onEvent: EventListener | undefined,
): RuleSettings<Req> {
  const keys = namedFunctions(where, "keys", options.keys ?? {}, "user", "(req) => req.user?.id");
  const costs = namedFunctions(where, "costs", options.costs ?? {}, "items", "(req) => req.body.items.length");
  for (const name of Object.keys(keys)) {
    if (isBuiltInKey(name)) throw conflict(`${where}: \`keys\` cannot define ${shown(name)} anew. Give it another name.`, ["keys", name]);
  }
  return {
    keys,
    costs,
    hasPlan: options.plan !== undefined,
    ipv6Prefix: ipv6PrefixOption(where, options.ipv6Prefix),
    digests: keyDigests(where, options),
    exempt: options.rules === undefined ? [] : compileExempt(where, options.exempt),
    descriptors,
    checkRule,
    cost,
    warn: warner(onEvent),
  };
}

/** Checks an object whose members are functions of the app. A member may be undefined. The error shows an example. */
function namedFunctions<T extends object>(where: string, option: "keys" | "costs", functions: T, name: string, example: string): T {
  if (typeof functions !== "object" || Array.isArray(functions)) {
    throw wrongOption(where, option, "an object of functions", functions, `${option}: { ${name}: ${example} }`);
  }
  for (const [member, value] of Object.entries(functions)) {
    if (value === undefined || typeof value === "function") continue;
    throw wrongOption(where, `${option}.${member}`, "a function", value, `${option}: { ${member}: ${example} }`, [option, member]);
  }
  return functions;
}
