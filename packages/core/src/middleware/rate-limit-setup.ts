import type { OwnGuard } from "../decide/guard.js";
import { checkStore, type Store } from "../decide/store.js";
import type { EventListener } from "../events/events.js";
import { activeListener, listenerOf, type Warn } from "../events/listeners.js";
import { guardStore } from "../failure/store-guard.js";
import type { Limiter, StoreClient } from "../limits/limiter.js";
import { Receipts } from "../limits/receipt.js";
import { type RequestSettings, requestSettings } from "../requests/request-options.js";
import type { RequestReader } from "../requests/request-reader.js";
import { HeldRequests } from "../responses/held-requests.js";
import { Responder } from "../responses/outcome.js";
import { ActiveRules, type Version } from "../rules/active-rules.js";
import { type RuleSource, ruleSettings } from "../rules/rule.js";
import { WeakList } from "../support/maps.js";
import { checkRateLimitOptions, decisionName, type RateLimitOptions } from "./rate-limit-options.js";
import { SetupObserver } from "./setup-observer.js";

export type DefaultStore = (options?: { readonly onEvent: EventListener }) => Store;

/** The middlewares of this process that are not closed. */
// biome-ignore lint/suspicious/noExplicitAny: middlewares of several frameworks
export const openMiddlewares: WeakList<RateLimitSetup<any>> = new WeakList();

/** What the options of a middleware make: all that a request needs to be decided. */
export class RateLimitSetup<Req> {
  readonly store: Store;
  readonly decisionName: string;
  readonly settings: RequestSettings<Req>;
  /** Requests that pass later (`leakyBucket`). */
  readonly waiting: HeldRequests = new HeldRequests();
  /** Where the rules come from, if they may change. */
  readonly source: RuleSource | undefined;
  protected readonly where: string;
  /** How this middleware calls its store. */
  readonly client: StoreClient & { readonly guard: OwnGuard };
  protected readonly rules: ActiveRules<Req>;
  protected readonly responder: Responder<Req>;
  protected readonly skip: RateLimitOptions<Req>["skip"];
  protected readonly warn: Warn;
  /** Looks for mistakes of set-up in the first requests. Undefined once it has seen enough. */
  protected observer: SetupObserver<Req> | undefined;

  /**
   * @param own the adapter's own options, which the adapter checks.
   * @param defaultStore makes the store of a middleware without the option `store`.
   * @throws FloodgateError if an option is wrong.
   */
  constructor(
    where: string,
    options: RateLimitOptions<Req, string>,
    own: readonly string[],
    reader: RequestReader<Req>,
    defaultStore: DefaultStore,
  ) {
    checkRateLimitOptions(where, options, own);
    this.where = where;
    this.decisionName = decisionName(where, options.decisionName);
    this.skip = options.skip;
    this.settings = requestSettings(where, options, reader);
    const onEvent = listenerOf(options.onEvent);
    this.store =
      options.store === undefined ? defaultStore(options.onEvent && { onEvent: options.onEvent }) : checkStore(where, options.store);
    this.client = { guard: guardStore(where, this.store, options), onEvent, receipts: Receipts.of(where, options) };
    this.responder = new Responder(where, options, this.client);
    const shared = ruleSettings(where, options, reader, onEvent);
    this.warn = shared.warn;
    this.rules = new ActiveRules(where, options, shared, this.store, this.client);
    this.source = this.rules.source;
    this.client.guard.listen();
    openMiddlewares.add(this);
    this.observer = new SetupObserver(this, options.clientIp === undefined, shared.warn, (observer) => {
      this.observer = observer;
    });
  }

  /** The active version of the rules. One version decides all of a request, even if another becomes active meanwhile. */
  get version(): Version<Req> {
    return this.rules.current;
  }

  /** The listener that an event of this middleware is for; undefined if nobody listens. */
  get listener(): EventListener | undefined {
    return activeListener(this.client.onEvent);
  }

  /** The same for the event of a request. */
  protected get requestListener(): EventListener | undefined {
    return this.settings.reader.decisionEvents === false ? undefined : this.listener;
  }

  /** The limiters of all rules in force, by name. */
  get limiters(): ReadonlyMap<string, Limiter> {
    return this.version.limiters;
  }

  /**
   * Releases held requests, and stops following the source of rules and the store's breaker. The last rules stay active. The names of the
   * limits may be used again.
   */
  close(): void {
    this.waiting.release();
    openMiddlewares.delete(this);
    this.rules.close();
    this.client.guard.close();
  }
}
