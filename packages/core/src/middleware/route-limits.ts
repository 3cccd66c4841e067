import type { Store } from "../decide/store.js";
import type { Limiter } from "../limits/limiter.js";
import type { RequestReader } from "../requests/request-reader.js";
import { limitOptionNames } from "../rules/rule.js";
import { atPath } from "../support/errors.js";
import { yesOrNo } from "../support/options.js";
import type { RateLimitControls } from "./controls.js";
import { RateLimit } from "./rate-limit.js";
import { checkRateLimitOptions, type RateLimitOptions } from "./rate-limit-options.js";
import type { DefaultStore } from "./rate-limit-setup.js";

/** The options of an app whose routes may have options of their own. */
export interface AppLimitOptions<Req, Own extends string = never> extends RateLimitOptions<Req, Own> {
  /** Whether routes without options of their own are limited too. With `false`, the options are only defaults for routes. Default true. */
  global?: boolean;
}

/** A limit, and the options that it was made of. */
export interface RouteLimit<Req, Options> {
  readonly limit: RateLimit<Req>;
  readonly options: Options;
}

/** The options that say how much a limit allows. */
const amounts = ["limit", "window", "policy", "plans", "rules"] as const;

/** The limit of an app, and those of its routes that have options of their own. All share a store, unless a route's options name another. */
export class RouteLimits<Req, Options extends AppLimitOptions<Req, string>> implements RateLimitControls {
  /** The limit of routes without options of their own. Undefined with `global: false`. */
  readonly app: RouteLimit<Req, Options> | undefined;
  readonly #where: string;
  readonly #options: Options;
  readonly #check: (where: string, options: Options) => void;
  readonly #make: (where: string, options: Options) => RateLimit<Req>;
  readonly #all = new Set<RateLimit<Req>>();

  /**
   * @param own the names of the adapter's own options.
   * @param check checks them, in the options of the app and of each route.
   * @throws FloodgateError if an option is wrong.
   */
  constructor(
    where: string,
    options: Options,
    own: readonly string[],
    reader: RequestReader<Req>,
    defaultStore: DefaultStore,
    check: (where: string, options: Options) => void = () => undefined,
  ) {
    this.#where = where;
    this.#options = options;
    const words = [...own, "global"];
    this.#check = (where, options) => {
      checkRateLimitOptions(where, options, words);
      check(where, options);
    };
    let store: Store | undefined;
    this.#make = (where, options) => new RateLimit(where, options, words, reader, (given) => (store ??= defaultStore(given)));
    this.#check(where, options);
    if (options.global === undefined || yesOrNo(where, "global", options.global, "false")) this.app = this.#add(where, options);
  }

  /** The limiter of the app; with `global: false`, the first one of a route. */
  get limiter(): Limiter {
    return this.limiters.values().next().value as Limiter;
  }

  /** The limiters of the app and of its routes, by name. */
  get limiters(): ReadonlyMap<string, Limiter> {
    return new Map([...this.#all].flatMap((limit) => [...limit.version.limiters]));
  }

  /**
   * Makes the limit of a route. What its options leave out is as in the app's. If they say how much is allowed, nothing of what the app's say
   * about that applies, but with one of `limit` and `window` the other is as in the app's.
   * @param route the limit's name, if the options have none. Characters that names cannot have are percent-encoded.
   * @throws FloodgateError if an option is wrong.
   */
  of(own: Partial<Options>, route: string): RouteLimit<Req, Options> {
    const where = `${this.#where} (${route})`;
    this.#check(where, own as Options);
    const base: Partial<Options> = { ...this.#options };
    const replaced: string[] = [];
    if (own.rules !== undefined) replaced.push("name", ...limitOptionNames);
    else if (amounts.some((word) => own[word] !== undefined)) {
      replaced.push("policy", "rules", "plans");
      if (own.plans === undefined) replaced.push("plan");
      if (own.policy !== undefined) replaced.push("limit", "window");
    }
    for (const word of replaced) delete base[word as keyof Options];
    const name =
      base.rules === undefined && own.rules === undefined ? { name: route.replace(/[^ -~]+/g, encodeURIComponent).slice(0, 128) } : {};
    return atPath([], () => this.#add(where, { ...base, ...name, ...own } as Options), where);
  }

  close(): void {
    for (const limit of this.#all) limit.close();
  }

  #add(where: string, options: Options): RouteLimit<Req, Options> {
    const limit = this.#make(where, options);
    this.#all.add(limit);
    return { limit, options };
  }
}
