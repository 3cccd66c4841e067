import type { EventListener } from "../limits/events.js";
import type { ReceiptSecret } from "../limits/receipt.js";
import type { HeadersOption } from "../responses/headers.js";
import { limitWords } from "../rules/rule.js";
import type { RulesOptions } from "../rules/rules-options.js";
import { type FailureOptions, failureOptionNames } from "../stores/failure-options.js";
import type { Store } from "../stores/store.js";
import { FloodgateError, shown } from "../support/errors.js";
import { checkOptions, functionOrNothing } from "../support/options.js";
import type { Promised } from "../support/promises.js";
import type { RefundWhen } from "./afterwards.js";

/** The options of `rateLimit` that mean the same in every framework. */
export interface RateLimitOptions<Req, Own extends string = never> extends RulesOptions<Req, Own>, FailureOptions {
  /** Default: a memory store of this middleware's own. */
  store?: Store;
  /** Requests that are not limited at all. */
  skip?: (request: Req) => Promised<boolean>;
  /** Default `"standard"`. */
  headers?: HeadersOption;
  /** Answers every 429 in place of the problem+json body: a text (text/plain), or an object (JSON). The headers and the status stay. */
  body?: string | object;
  /** Whether to give back what a request took, by its response's status; 499 where the client went away before it was sent. */
  refundWhen?: RefundWhen;
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
  "body",
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
