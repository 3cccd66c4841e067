import type { EventListener } from "../limits/events.js";
import type { ReceiptSecret } from "../limits/receipt.js";
import type { ClientIpOption } from "../requests/client-ip.js";
import type { KeyFunction } from "../requests/key-source.js";
import type { RefundWhen } from "../responses/afterwards.js";
import type { HeadersOption } from "../responses/headers.js";
import type { CostFunction } from "../rules/cost.js";
import { type LimitOptions, limitWords, type Rule } from "../rules/rule.js";
import type { RuleSource } from "../rules/source.js";
import { type FailureOptions, failureOptionNames } from "../stores/failure-options.js";
import type { Store } from "../stores/store.js";
import { FloodgateError, shown } from "../support/errors.js";
import { checkOptions, functionOrNothing } from "../support/options.js";
import type { Promised } from "../support/promises.js";

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
  refundWhen?: RefundWhen;
  /** Where the client's address comes from; default: the framework's own proxy setting. */
  clientIp?: ClientIpOption<Req>;
  /** How many leading bits of an IPv6 address make one client, 1 to 128; default 56. */
  ipv6Prefix?: number;
  /**
   * Makes the digests of secret keys HMACs; at least 32 characters, the same in every process. Without it they are plain SHA-256,
   * which does not protect what can be guessed, such as passwords and short tokens.
   */
  keySecret?: string;
  /** What the decision is called where handlers find it: the request, the state or the context. Default `"rateLimit"`. */
  decisionName?: string;
  onEvent?: EventListener;
  /** Signs and checks the receipts of the middleware's limiters: a text of at least 32 characters, or several, of which the first signs. */
  receiptSecret?: ReceiptSecret;
}

const words = [
  "name",
  ...limitWords,
  ...failureOptionNames,
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
  "keySecret",
  "decisionName",
  "onEvent",
  "receiptSecret",
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
