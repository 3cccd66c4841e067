import type { Check } from "../decide/decision.js";
import { type Store, scopeOf } from "../decide/store.js";
import type { Warn } from "../events/listeners.js";
import { isWholeIpv6, type RequestContext } from "../requests/request-context.js";
import type { RequestSettings } from "../requests/request-options.js";
import type { RequestReader } from "../requests/request-reader.js";
import type { CompiledRules } from "../rules/compile.js";
import { FloodgateError, shown } from "../support/errors.js";
import { getOrMake } from "../support/maps.js";
import { soon } from "../support/runtime.js";
import { warnOnce } from "../support/warn.js";

/** Mistakes of set-up show in an app's first requests. */
const maxRequests = 1000;
/** For how many requests a middleware keeps its checks, if another one asks. */
const maxKept = 100;

/** By middleware. */
// biome-ignore lint/suspicious/noExplicitAny: middlewares of several frameworks
const observers = new WeakMap<object, SetupObserver<any>>();
/** By app. */
const suspects = new WeakMap<object, MadePerRequest>();
const usedStores = new WeakSet<object>();

type Seen = Pick<RequestContext, "previous" | "rules">;

/**
 * Looks for mistakes of set-up that only requests show: a middleware that is mounted twice or made for each request, a wrong proxy setting,
 * and keys that count each address of a client. It takes itself off after the first requests, and comes back if another middleware asks.
 */
export class SetupObserver<Req> {
  readonly #settings: RequestSettings<Req>;
  readonly #scope: object;
  readonly #checksProxy: boolean;
  readonly #warn: Warn;
  readonly #attach: (observer: SetupObserver<Req> | undefined) => void;
  /**
   * `"new"` until the synchronous code that made the middleware has run. If that code passes it a request, it is a suspect: then this is what
   * its app's suspects share, until it meets a second request. Undefined if it is no suspect.
   */
  #madePerRequest: MadePerRequest | "new" | undefined;
  #requestsLeft = maxRequests;
  /** The number of requests whose checks are still to be kept. */
  #keepsLeft = 0;
  readonly #kept = new WeakMap<Seen, readonly Check[]>();
  #comparesLeft = maxRequests;

  /**
   * @param checksProxy whether to look at the framework's proxy setting: without the option `clientIp`.
   * @param attach puts an observer on the middleware, or takes it off.
   */
  constructor(
    middleware: { readonly settings: RequestSettings<Req>; readonly store: Store },
    checksProxy: boolean,
    warn: Warn,
    attach: (observer: SetupObserver<Req> | undefined) => void,
  ) {
    this.#settings = middleware.settings;
    this.#scope = scopeOf(middleware.store);
    this.#checksProxy = checksProxy;
    this.#warn = warn;
    this.#attach = attach;
    observers.set(middleware, this);
    if (usedStores.has(this.#scope)) return;
    usedStores.add(this.#scope);
    this.#madePerRequest = "new";
    soon(() => {
      if (this.#madePerRequest === "new") this.#madePerRequest = undefined;
    });
  }

  /**
   * Call it for each request.
   * @throws FloodgateError `FLOODGATE_FORGEABLE_CLIENT_IP` if an enforced rule needs the address, and clients can forge it.
   */
  sees(context: RequestContext<Req>, { readsAddress, needsAddress }: CompiledRules<Req>): void {
    if (this.#madePerRequest !== undefined) this.#noticeFirst(context);
    // A shadow rule warns when it reads the address.
    if (readsAddress && this.#checksProxy) lookAtProxy(this.#settings.reader, this.#warn, context.request, needsAddress);
    if (this.#requestsLeft > 0) this.#requestsLeft--;
    else if (this.#keepsLeft === 0) this.#attach(undefined);
  }

  counts(context: RequestContext<Req>, checks: readonly Check[]): void {
    const first = checks[0] as Check;
    if (this.#madePerRequest instanceof MadePerRequest) this.#madePerRequest.add(first.key, first.limit.name, this.#warn);
    this.#findTwice(context, checks);
    if (this.#settings.ipv6Prefix < 128) for (const { key, limit } of checks) this.#lookAtKey(context, key, limit.name);
  }

  #noticeFirst(context: RequestContext<Req>): void {
    const made = this.#madePerRequest;
    if (made === "new") {
      // The server of a socket that tests have made is null.
      const app = this.#settings.reader.app?.(context.request);
      this.#madePerRequest = app ? getOrMake(suspects, app, () => new MadePerRequest()) : undefined;
    } else if (made !== undefined && context.previousHere === undefined) {
      made.clear();
      this.#madePerRequest = undefined;
    }
  }

  /**
   * Finds two middlewares that count one request twice: under one name and one key, in one store. Retaining each request's checks would
   * cost too much. So the second middleware that meets a request under the name of the first makes the first keep the checks of its next
   * requests, and compares their keys.
   */
  #findTwice(context: Seen, checks: readonly Check[]): void {
    if (this.#keepsLeft > 0) {
      this.#keepsLeft--;
      this.#kept.set(context, checks);
    }
    if (context.previous === undefined || this.#comparesLeft === 0) return;
    this.#comparesLeft--;
    for (let seen: RequestContext | undefined = context.previous; seen !== undefined; seen = seen.previous) {
      const other = observers.get(seen.by);
      if (other === undefined || other === this || other.#scope !== this.#scope) continue;
      const twice = checks.find(({ limit, key }) => other.#hasCounted(seen as RequestContext, limit.name, key));
      if (twice === undefined) continue;
      this.#comparesLeft = 0;
      const message = `Two middlewares named ${shown(twice.limit.name)} on one store count a request twice. Mount only one, or give each its own name.`;
      this.#warn("FLOODGATE_COUNTED_TWICE", message, twice.limit.name);
      return;
    }
  }

  #hasCounted(context: Seen, name: string, key: string): boolean {
    if (!context.rules.some((rule) => rule.name === name)) return false;
    const kept = this.#kept.get(context);
    if (kept === undefined) {
      this.#keepsLeft = maxKept;
      this.#attach(this);
    }
    return kept?.some((check) => check.limit.name === name && check.key === key) === true;
  }

  #lookAtKey(context: RequestContext<Req>, text: string, name: string): void {
    if (!text.includes(":")) return;
    // The parts of tuples too.
    if (!text.split(/[(),\\]/).some((part) => part.includes(":") && isWholeIpv6(context, part))) return;
    const message = `The key of ${shown(name)} has the client's whole IPv6 address in it. One client has 2^64 or more, so this limits nobody. Write key: "ip", or (req, { ip }) => ip, the client's network.`;
    this.#warn("FLOODGATE_KEY_PER_ADDRESS", message, name);
  }
}

/** Fewer middlewares with the same key could be chance. */
const minSuspects = 10;
const maxKeys = 1000;

/**
 * Finds an app that makes a new middleware for each request: each has its own store, so every count begins at 0. A suspect is a middleware
 * that meets its first request in the run of the event loop that made it, and has a store that nobody used before. The app is warned if
 * several suspects meet the same key and none of them meets a second request. So an app may make a middleware during a request and keep it,
 * such as one for each tenant.
 */
class MadePerRequest {
  readonly #suspects = new Map<string, number>();
  #hasWarned = false;

  add(key: string, name: string, warn: Warn): void {
    if (this.#hasWarned) return;
    const count = (this.#suspects.get(key) ?? 0) + 1;
    if (this.#suspects.size >= maxKeys) this.#suspects.clear();
    this.#suspects.set(key, count);
    if (count < minSuspects) return;
    this.#hasWarned = true;
    this.#suspects.clear();
    warn(
      "FLOODGATE_MADE_PER_REQUEST",
      `rateLimit is called for each request (limit "${name}"), so nothing is limited. Call it once, when the app is set up: app.use(rateLimit({ ... })).`,
    );
  }

  /** Records that a suspect met a second request, so the app keeps its middlewares. */
  clear(): void {
    this.#suspects.clear();
  }
}

/**
 * Checks the framework's proxy setting on the first requests, whatever the rules count by. It finds a setting that lets clients forge
 * their address, and a proxy that the framework does not know, so that all its clients share one limit.
 * @param throws whether to throw `FLOODGATE_FORGEABLE_CLIENT_IP` if clients can forge their address. The console gets it in any case, once.
 */
export function lookAtProxy<Req>(
  reader: Pick<RequestReader<Req>, "header" | "remoteAddress" | "clientIp" | "trustsProxy">,
  warn: Warn,
  request: Req,
  throws: boolean,
): void {
  let ip: string | undefined;
  try {
    ip = reader.clientIp(request);
  } catch (error) {
    if (error instanceof FloodgateError) warnOnce(error.code, error.message);
    if (throws) throw error;
    return;
  }
  const forwarded = reader.header(request, "x-forwarded-for") ?? reader.header(request, "forwarded");
  if (forwarded === undefined || reader.trustsProxy(request)) return;
  // Another address means that the app reads the proxy's header itself. The peer alone in the list means that nobody is behind it: wrappers
  // for AWS Lambda pass the client as the peer, and the gateway has added it to the list.
  if (ip !== reader.remoteAddress(request) || forwarded === ip) return;
  // All middlewares of a process belong to one app, so the console gets this once.
  warn(
    "FLOODGATE_MISSING_PROXY_SETTING",
    `A request from ${ip ?? "an unknown address"} has a forwarded address, but no proxy is trusted. Behind a proxy of yours, all clients share one limit: set the framework's proxy setting, or clientIp: { trustedHops: 1 }. Without one, write clientIp: { trustedHops: 0 }.`,
  );
}
