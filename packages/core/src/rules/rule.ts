import type { Policy, PolicyOptions } from "../algorithms/registry.js";
import type { CostFunction } from "../requests/functions.js";
import type { Duration } from "../support/duration.js";
import type { Promised } from "../support/promises.js";
import type { BanOptions } from "./bans.js";
import type { Exempt } from "./exempt.js";
import type { Grant } from "./grants.js";
import type { KeyOption } from "./key-source.js";
import type { Match } from "./match.js";
import type { PlanOptions } from "./plans.js";
import type { RefundOption } from "./refund-when.js";

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
type Beside = "error" | "default" | "addition";

/** All limit options, and what each means beside `rules`. */
export const meaningWithRules: Readonly<Record<string, Beside>> = {
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
} satisfies Record<keyof LimitOptions<unknown>, Beside>;

export const limitWords: readonly string[] = Object.keys(meaningWithRules);
