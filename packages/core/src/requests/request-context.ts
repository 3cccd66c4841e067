import type { Decision } from "../decide/decision.js";
import type { RequestEvent } from "../events/events.js";
import type { Key } from "../limits/key.js";
import { FloodgateError, shown } from "../support/errors.js";
import { formatIp, ipKey, parseIp } from "../support/ip.js";
import { abandon, andThen, isPromise, type Promised } from "../support/promises.js";
import type { Descriptor } from "./descriptor.js";
import type { CostFunction, KeyFunction, KeyInfo } from "./functions.js";
import { type Readings, readingsOf } from "./path.js";
import type { RequestSettings } from "./request-options.js";

interface Middleware {
  readonly decisionName: string;
}

/** Returns the route of a request under one rule; undefined if it has no route. */
export type RouteOf<Req> = (context: RequestContext<Req>) => string | undefined;

/** What a function of the app has answered or thrown. */
interface AppAnswer<Req> {
  readonly of: unknown;
  readonly value: unknown;
  readonly failed: boolean;
  /** Of a key function. A function may be both a key and a plan. */
  readonly info: LazyKeyInfo<Req> | undefined;
  readonly next: AppAnswer<Req> | undefined;
}

/**
 * The newest context of a request is a property of the request. A `WeakMap` in its place costs more than the whole rest of a middleware,
 * nearly all of it in the garbage collector.
 */
const newest: unique symbol = Symbol("floodgate.context");
const noRules: RequestContext["rules"] = [];

interface Holder {
  [newest]?: RequestContext;
}

/**
 * The object whose property the context is: the request, or its stream state in Node. Express changes the prototype of requests, and a new
 * property of such a request costs more than the decision.
 */
function holderOf(request: object): Holder {
  return ((request as { readonly _readableState?: object })._readableState ?? request) as Holder;
}

/** The value was not read yet. Undefined would mean that the request has none. */
const unread: unique symbol = Symbol("unread");

/**
 * A request in one middleware. It reads what rules need of the request, each part once and only when a rule needs it, and holds what the
 * middleware decided. The fields are not `#private`, because private fields make an object for each request slower to create.
 */
export class RequestContext<Req = unknown> {
  readonly request: Req;
  readonly by: Middleware;
  /** The context of the middleware that the request passed before, if any. */
  readonly previous: RequestContext | undefined;
  /** The previous context of this same middleware, if it is mounted twice or the app forwards the request to another path. */
  readonly previousHere: RequestContext | undefined;
  /** The rules that the request was checked under; none if it was rejected. Retaining the checks themselves costs more than rebuilding them. */
  rules: readonly { readonly name: string }[];
  decision: Decision | undefined;
  /** The decision that the headers show; undefined if they show none. */
  reported: Decision | undefined;
  /** When the store was asked: of `timeOfAsking`; -1 if nobody listens. */
  storeAskedMs: number;
  /** The event of the request that this middleware has emitted. */
  emitted: RequestEvent | undefined;
  /** A header that a listener adds to the response. It must be set before the listener awaits anything. */
  extraHeader: { readonly name: string; readonly value: string; readonly list?: string } | undefined;
  readonly settings: RequestSettings<Req>;
  /** What `address` has answered. */
  knownAddress: Promised<string | undefined> | typeof unread;
  private knownIp: Promised<string | undefined> | typeof unread;
  private knownPath: Readings | undefined;
  private knownMethod: string | undefined;
  private answers: AppAnswer<Req> | undefined;

  /** Becomes the newest context of the request. */
  constructor(request: Req, by: Middleware, settings: RequestSettings<Req>) {
    const { reader } = settings;
    const holder = holderOf(reader.identity?.(request) ?? (request as object));
    const previous = holder[newest];
    let previousHere = previous;
    while (previousHere !== undefined && previousHere.by !== by) previousHere = previousHere.previous;
    this.request = request;
    this.by = by;
    this.previous = previous;
    this.previousHere = previousHere;
    this.rules = noRules;
    this.decision = undefined;
    this.reported = undefined;
    this.storeAskedMs = -1;
    this.emitted = undefined;
    this.extraHeader = undefined;
    this.settings = settings;
    this.knownAddress = unread;
    this.knownIp = unread;
    this.knownPath = undefined;
    this.knownMethod = undefined;
    this.answers = undefined;
    holder[newest] = this as RequestContext<unknown>;
  }

  /** The method in upper case. Over HTTP/2 it may arrive in lower case, and routers accept that. */
  get method(): string {
    this.knownMethod ??= this.settings.reader.method(this.request).toUpperCase();
    return this.knownMethod;
  }

  get path(): Readings {
    this.knownPath ??= readingsOf(this.settings.reader.path(this.request));
    return this.knownPath;
  }

  header(lowerCaseName: string): string | undefined {
    return this.settings.reader.header(this.request, lowerCaseName);
  }

  get descriptor(): Descriptor | undefined {
    return this.settings.reader.descriptors?.of(this.request);
  }

  get route(): string | undefined {
    return this.settings.reader.route(this.request);
  }

  /** The client's whole address, as the framework or `clientIp` reads it. */
  address(): Promised<string | undefined> {
    if (this.knownAddress === unread) {
      const { clientIp, isOwnClientIp } = this.settings;
      const address = isOwnClientIp ? this.once(clientIp, () => clientIp(this.request)) : clientIp(this.request);
      // An app may pass anything as an address, or have replaced the framework's own.
      this.knownAddress = typeof address === "string" || isPromise(address) ? address : undefined;
    }
    return this.knownAddress;
  }

  /** The client as limits count it: IPv4 as a dotted quad, IPv6 as its network. Undefined if the request has no valid address. */
  ip(): Promised<string | undefined> {
    if (this.knownIp === unread) {
      const address = this.address();
      if (typeof address === "string") this.knownIp = ipKey(address, this.settings.ipv6Prefix);
      else {
        this.knownIp = address?.then((later) => {
          const ip = later === undefined ? undefined : ipKey(later, this.settings.ipv6Prefix);
          this.knownIp = ip;
          return ip;
        });
      }
    }
    return this.knownIp;
  }

  /** The name of the request's plan; undefined if it has none. */
  plan(): Promised<string | undefined> {
    const { plan } = this.settings;
    if (plan === undefined) return undefined;
    return andThen<unknown, string | undefined>(
      this.once(plan, () => plan(this.request)),
      checkPlan,
    );
  }

  cost(of: CostFunction<Req>): Promised<number | undefined> {
    return this.once(of, () => of(this.request));
  }

  /** The answer of a key function for a rule with this route. */
  key(of: KeyFunction<Req>, routeOf: RouteOf<Req>): Promised<Key | undefined> {
    for (let known = this.answers; known !== undefined; known = known.next) {
      if (known.of !== of || known.info === undefined) continue;
      const fits = known.info.fits(routeOf, known.value);
      if (fits === true) return replayed(known) as Promised<Key | undefined>;
      if (fits === false) continue;
      const again = (): Promised<Key | undefined> => this.key(of, routeOf);
      return (known.value as PromiseLike<unknown>).then(again, again);
    }
    const info = new LazyKeyInfo(this, routeOf);
    return this.keep(of, info, () => {
      // The function reads the address synchronously, so a promised address must be resolved first.
      const ip = this.settings.isOwnClientIp && of.length > 1 ? this.ip() : undefined;
      return isPromise(ip) ? ip.then(() => of(this.request, info)) : of(this.request, info);
    });
  }

  /** Whether the same middleware has checked the request under this rule before, and did not reject it. */
  wasCheckedUnder(name: string): boolean | undefined {
    return this.previousHere?.rules.some((rule) => rule.name === name) || this.previousHere?.wasCheckedUnder(name);
  }

  /** Calls a function of the app, unless it has answered before. */
  private once<T>(of: unknown, call: () => T): T {
    for (let known = this.answers; known !== undefined; known = known.next)
      if (known.of === of && known.info === undefined) return replayed(known) as T;
    return this.keep(of, undefined, call);
  }

  private keep<T>(of: unknown, info: LazyKeyInfo<Req> | undefined, call: () => T): T {
    let value: unknown;
    let failed = false;
    try {
      value = call();
      if (isPromise(value)) value = shared(value, info);
    } catch (error) {
      value = error;
      failed = true;
    }
    // After the call, which may have asked another function.
    this.answers = { of, value, failed, info, next: this.answers };
    return replayed(this.answers) as T;
  }
}

/** One promise for all rules: a database library may run its query again at each `then`. */
function shared<Req>(answer: PromiseLike<unknown>, info: LazyKeyInfo<Req> | undefined): Promise<unknown> {
  const promise = Promise.resolve(answer);
  if (info !== undefined) {
    const settled = (): void => info.settle();
    promise.then(settled, settled);
  }
  return promise;
}

function replayed<Req>({ value, failed }: AppAnswer<Req>): unknown {
  if (failed) throw value;
  return value;
}

/** Reads the address and the route when the key function does, so that a function that reads neither works without them. */
class LazyKeyInfo<Req> implements KeyInfo {
  readonly #context: RequestContext<Req>;
  readonly #routeOf: RouteOf<Req>;
  #hasReadRoute = false;
  #isSettled = false;

  constructor(context: RequestContext<Req>, routeOf: RouteOf<Req>) {
    this.#context = context;
    this.#routeOf = routeOf;
  }

  get ip(): string {
    const ip = this.#context.ip();
    if (typeof ip === "string") return ip;
    throw noClientIp();
  }

  get route(): string {
    this.#hasReadRoute = true;
    return this.#routeOf(this.#context) ?? noRoute();
  }

  settle(): void {
    this.#isSettled = true;
  }

  /** Whether the function's answer is valid for a rule with another route; undefined while its promise may still read the route. */
  fits(routeOf: RouteOf<Req>, answer: unknown): boolean | undefined {
    const hasAnswered = this.#isSettled || !isPromise(answer);
    if (hasAnswered && !this.#hasReadRoute) return true;
    if (routeOf(this.#context) === this.#routeOf(this.#context)) return true;
    return this.#hasReadRoute ? false : undefined;
  }
}

/** Whether a text is the client's whole IPv6 address: one client has 2^64 of these or more. False if that is not certain. */
export function isWholeIpv6<Req>(context: RequestContext<Req>, text: string): boolean {
  const ip = parseIp(text);
  if (ip === undefined) return false;
  const plain = formatIp(ip);
  // An IPv4 address, in any notation, is one client.
  if (!plain.includes(":")) return false;
  try {
    const own = context.address();
    abandon([own]);
    const parsed = typeof own === "string" ? parseIp(own) : undefined;
    return parsed !== undefined && formatIp(parsed) === plain;
  } catch {
    return false;
  }
}

function checkPlan(plan: unknown): string | undefined {
  if (typeof plan === "string" || plan === undefined) return plan;
  if (plan === null) return undefined;
  const message = `\`plan\` must answer the name of the request's plan, or undefined, but answered ${shown(plan)}.`;
  throw new FloodgateError("FLOODGATE_MISSING_PLAN", message);
}

export function noClientIp(): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_NO_CLIENT_IP",
    'The request has no client IP address: Unix sockets and a `Request` have none, or a proxy sent an invalid one. With @floodgate/fetch, write limit.check(request, { ip }); in a test of Hono, app.request("/", {}, { incoming: { socket: { remoteAddress: "192.0.2.1" } } }). Else set the framework\'s proxy setting, `clientIp` or `key`.',
  );
}

/** @throws FloodgateError `FLOODGATE_NO_ROUTE` */
export function noRoute(): never {
  throw new FloodgateError(
    "FLOODGATE_NO_ROUTE",
    'The key "route" needs a middleware on a route. Write app.get("/users/:id", rateLimit(...), handler), or give the rule a match with a path.',
  );
}

/** The decision that a request got last under this `decisionName`; undefined if no limit applied. */
export function decisionOf(request: object, decisionName = "rateLimit"): Decision | undefined {
  let context = holderOf(request)[newest];
  while (context !== undefined && (context.decision === undefined || context.by.decisionName !== decisionName)) context = context.previous;
  return context?.decision;
}
