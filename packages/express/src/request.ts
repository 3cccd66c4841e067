import { type Decision, FloodgateError } from "@floodgate/core";
import {
  checkDecisionName,
  decisionOf,
  forgeableClientIp,
  getOrMake,
  nodeReader,
  parsedPath,
  type RequestReader,
  routePattern,
  trustsEveryAddress,
} from "@floodgate/core/adapter";

declare global {
  namespace Express {
    interface Request {
      /**
       * The decision of the last rate limit of this request; undefined if none applied. Declare another `decisionName` the same way:
       * `declare global { namespace Express { interface Request { quota?: Decision } } }`.
       */
      rateLimit?: Decision;
    }
  }
}

/** A request as the middleware takes it. It fits Express 4 and 5, and leaves the types of routes unchanged. */
export interface ExpressMessage extends Express.Request {
  method: string;
  url: string;
  originalUrl: string;
  baseUrl: string;
  path: string;
  hostname: string;
  protocol: string;
  ip?: string | undefined;
  headers: { [name: string]: string | string[] | undefined };
  socket: { remoteAddress?: string | undefined };
  app: { get: (setting: string) => unknown };
  get: (header: string) => string | undefined;
}

/** A request as functions of the app get it. It includes what the app adds to `Express.Request`, such as `req.user`. */
export interface ExpressRequest extends ExpressMessage {
  // biome-ignore lint/suspicious/noExplicitAny: only the app knows what routers and body parsers put there
  params: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  query: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  body?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  route?: any;
}

export const expressReader: RequestReader<ExpressRequest> = {
  ...nodeReader,
  app: (request) => request.app,
  // Some targets, such as `/\\a@#`, have no path, although the types say so. No route serves them.
  path: ({ baseUrl, path, url, originalUrl }) => parsedPath(baseUrl, path ?? "/", url, originalUrl),
  clientIp(request) {
    const trust = request.app.get("trust proxy");
    // Without a proxy, `req.ip` is the socket's address. Reading it here is cheaper.
    if (!trust && isOwnIp(request)) return request.socket.remoteAddress;
    // Express makes a function of its setting, once.
    const trusts = trust && request.app.get("trust proxy fn");
    if (typeof trusts === "function" && trustsEveryAddress(trusts, trusts as (address: string, hop: number) => unknown)) {
      throw forgeableClientIp(
        `Express's \`trust proxy\` is ${settingText(trust)}`,
        'Write app.set("trust proxy", 1) for one proxy in front, or the addresses of your proxies: app.set("trust proxy", "loopback, 10.0.0.0/8").',
      );
    }
    // Without `trustProxy`, Fastify sets no list, and its address is the socket's.
    if (!isInFastify(request) || (request as { readonly ips?: unknown }).ips === undefined) return request.ip;
    throw new FloodgateError(
      "FLOODGATE_FORGEABLE_CLIENT_IP",
      'The client IP is Fastify\'s here, by its `trustProxy`, and rateLimit cannot see whom that trusts: with `trustProxy: true` it is the left-most forwarded address, which anyone can forge. Give rateLimit a `clientIp`: clientIp: { trustedHops: 1 } for one proxy in front, or the addresses of your proxies: clientIp: { trustedProxies: ["10.0.0.0/8"] }.',
    );
  },
  // If the app replaces `req.ip`, it handles proxies itself.
  trustsProxy: (request) => !isInFastify(request) && (Boolean(request.app.get("trust proxy")) || !isOwnIp(request)),
  // Only the route's own pattern, because the mount path of a router contains values of parameters.
  route: routePattern,
};

/** Whether `req.ip` is Express's own. */
function isOwnIp(request: ExpressRequest): boolean {
  const prototype = Object.getPrototypeOf(request) === last?.of ? (last as Prototype) : prototypeOf(request);
  return prototype.hasOwnIp && !Object.hasOwn(request, "ip");
}

/** Whether @fastify/express has replaced `req.ip` and `req.ips`, as mocks of tests do too. Express's own setting has no effect then. */
function isInFastify(request: ExpressRequest): boolean {
  return Object.hasOwn(request, "ips") && Object.hasOwn(request, "log");
}

function settingText(trust: unknown): string {
  if (typeof trust === "function") return "a function that trusts everyone";
  return typeof trust === "boolean" || typeof trust === "number" ? `${trust}` : `${JSON.stringify(trust)}, which is everyone`;
}

/** What we know about the prototype of an app's requests. */
interface Prototype {
  readonly of: object;
  /** The prototype where Express defines `req.ip`. Decisions are defined there too. */
  readonly owner: object;
  /** Whether `req.ip` is Express's own. An app may replace it. */
  readonly hasOwnIp: boolean;
}

const prototypes = new WeakMap<object, Prototype>();
/** The last one, because most processes have one app. */
let last: Prototype | undefined;

/** Inspects a request's prototype, once per prototype. Other objects, such as mocks in tests, are inspected each time. */
function prototypeOf(request: object): Prototype {
  const prototype: object = Object.getPrototypeOf(request);
  let known = prototypes.get(prototype);
  if (known === undefined) {
    let owner: object | null = prototype;
    while (owner !== null && !Object.hasOwn(owner, "ip")) owner = Object.getPrototypeOf(owner);
    if (owner === null) return { of: prototype, owner: request, hasOwnIp: false };
    const ip = Object.getOwnPropertyDescriptor(owner, "ip")?.get;
    // Minified, it has no name.
    const isOwn = /^function[^?|]+trust proxy fn[^?|]+$/.test(String(ip));
    known = { of: prototype, owner, hasOwnIp: isOwn && Object.hasOwn(owner, "ips") };
    prototypes.set(prototype, known);
  }
  last = known;
  return known;
}

/** Marks the getters of all copies of this package. */
const isDecision: unique symbol = Symbol.for("floodgate.decision");

/** The names that decisions have, by the prototype that shows them. All apps of one Express share it. */
const shown = new WeakMap<object, Set<string>>();

/**
 * Defines `req.rateLimit` (or another `decisionName`) as a getter on Express's request prototype, like `req.ip`, so it costs nothing per
 * request.
 * @returns the prototype of requests that have the getter now. Undefined if only this object has it.
 * @throws FloodgateError if requests already have a property of that name.
 */
export function showDecision(request: object, name: string): object | undefined {
  const { owner } = prototypeOf(request);
  const names = getOrMake(shown, owner, () => new Set<string>());
  if (!names.has(name)) {
    const found: { (): unknown; [isDecision]?: true } | undefined = Object.getOwnPropertyDescriptor(owner, name)?.get;
    // Another copy of this package may be installed too, and know other decisions.
    const other = found?.[isDecision] ? found : undefined;
    if (other === undefined) checkDecisionName(name, request);
    if (other !== undefined || !(name in owner)) define(owner, name, other);
    names.add(name);
  }
  return owner === request ? undefined : Object.getPrototypeOf(request);
}

function define(owner: object, name: string, other: (() => unknown) | undefined): void {
  function get(this: object): unknown {
    return decisionOf(this, name) ?? other?.call(this);
  }
  function set(this: object, value: unknown): void {
    Object.defineProperty(this, name, { configurable: true, enumerable: true, writable: true, value });
  }
  get[isDecision] = true as const;
  Object.defineProperty(owner, name, { configurable: true, get, set });
}
