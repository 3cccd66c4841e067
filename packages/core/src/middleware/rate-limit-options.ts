import type { Store } from "../decide/store.js";
import type { EventListener } from "../events/events.js";
import { type FailureOptions, failureOptionNames } from "../failure/store-guard.js";
import type { ReceiptSecret } from "../limits/receipt.js";
import { requestName } from "../requests/foreign-request.js";
import type { ResponseOptions } from "../responses/outcome.js";
import { limitOptionNames, type RulesOptions } from "../rules/rule.js";
import { invalidOption, wrongOption } from "../support/errors.js";
import { checkOptions, functionOrNothing } from "../support/options.js";
import type { Promised } from "../support/promises.js";

/** The options of `rateLimit` that mean the same in every framework. */
export interface RateLimitOptions<Req, Own extends string = never> extends RulesOptions<Req, Own>, ResponseOptions, FailureOptions {
  /** Where the counts are kept: `redisStore(client)` for several processes. Default: a memory store for this middleware alone. */
  store?: Store;
  /** Requests that no limit counts: `(req) => req.path === "/health"`. */
  skip?: (request: Req) => Promised<boolean>;
  /** The property of the request, state or context that holds the decision. Default `"rateLimit"`. */
  decisionName?: string;
  /** Called with each event: decisions, bans, refunds, settlements, store errors, warnings, rule changes. */
  onEvent?: EventListener;
  /** Signs and checks the receipts of the middleware's limiters: a string of at least 32 characters, or several. The first one signs. */
  receiptSecret?: ReceiptSecret;
}

const words = [
  "name",
  ...limitOptionNames,
  ...failureOptionNames,
  ..."rules keys costs plan store skip headers body refundWhen clientIp ipv6Prefix keySecret decisionName onEvent receiptSecret".split(" "),
];

/**
 * Rejects unknown options and options that must be functions but are not.
 * @param own the adapter's own options, which the adapter checks itself.
 */
export function checkRateLimitOptions<Req>(where: string, options: RateLimitOptions<Req, string>, own: readonly string[]): void {
  const request = requestName(options);
  if (request !== undefined) {
    throw invalidOption(
      `${where} takes an object of options, but was given ${request}. Write app.${/Fastify/.test(request) ? "register" : "use"}(${where}({ limit: 100, window: "1m" })).`,
    );
  }
  checkOptions(where, options, [...words, ...own], 'rateLimit({ limit: 100, window: "1m" })');
  functionOrNothing(where, "skip", options.skip, '(req) => req.path === "/health"');
  functionOrNothing(where, "plan", options.plan, "(req) => req.user?.plan");
  functionOrNothing(where, "onEvent", options.onEvent, "(event) => console.log(event)");
}

export function decisionName(where: string, name: unknown): string {
  if (name === undefined) return "rateLimit";
  if (typeof name === "string" && /^[A-Za-z_$][\w$]*$/.test(name) && name !== "__proto__") return name;
  throw wrongOption(where, "decisionName", "a valid property name", name, 'decisionName: "rateLimit"');
}
