import { type Decision, decisionOf, FloodgateError, type RequestReader } from "@floodgate/core";

declare global {
  namespace Express {
    interface Request {
      /**
       * The decision of the rate limit that this request met last; undefined where none applied. A `decisionName` of your own
       * is declared as this one is: `declare global { namespace Express { interface Request { quota?: Decision } } }`.
       */
      rateLimit?: Decision;
    }
  }
}

/** What the middleware takes, so that Express 4 and 5 apps both fit: nothing of what a route's own types say, which stay as they are. */
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

/** What functions of the request are given. What the app itself adds to `Express.Request` (`req.user`, say) is here too. */
export interface ExpressRequest extends ExpressMessage {
  // biome-ignore lint/suspicious/noExplicitAny: what routers and body parsers put there is the app's to know
  params: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  query: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  body?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  route?: any;
}

export const expressReader: RequestReader<ExpressRequest> = {
  identity: (request) => request,
  method: (request) => request.method,
  // As the routers see it: of an absolute target the path alone, and of a URL that was rewritten the new one.
  path: (request) => request.baseUrl + request.path,
  header(request, name) {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  },
  remoteAddress: (request) => request.socket.remoteAddress,
  clientIp(request) {
    const trust = request.app.get("trust proxy");
    // Without a proxy Express's `req.ip` is the socket's address, at the price of reading the forwarded ones first.
    if (!trust && prototypeOf(request).hasOwnIp && !Object.hasOwn(request, "ip")) return request.socket.remoteAddress;
    if (trust === true) {
      throw new FloodgateError(
        "FLOODGATE_FORGEABLE_CLIENT_IP",
        'Express\'s `trust proxy` is true, so the client IP is the left-most forwarded address, which anyone can forge. Write app.set("trust proxy", 1) for one proxy in front, or the addresses of your proxies: app.set("trust proxy", "loopback, 10.0.0.0/8"). Or give rateLimit a `clientIp`.',
      );
    }
    return request.ip;
  },
  trustsProxy: (request) => Boolean(request.app.get("trust proxy")),
  // The mount path of a router holds the values of its parameters, and a raw URL is never a key: the route's own pattern is it.
  route(request) {
    const path: unknown = request.route?.path;
    return typeof path === "string" ? path : undefined;
  },
};

/** What is known of a prototype that an app gives its requests. */
interface Prototype {
  /** Where Express has put `req.ip`, and decisions are shown beside it. */
  readonly owner: object;
  /** Whether `req.ip` is Express's own: an app may define another. */
  readonly hasOwnIp: boolean;
  /** The names under which decisions are shown there. */
  readonly names: Set<string>;
}

const prototypes = new WeakMap<object, Prototype>();
/** By owner: the apps of one Express share theirs. */
const namesShown = new WeakMap<object, Set<string>>();
/** The one seen last: most processes have one app. */
let last: object | undefined;
let lastKnown: Prototype | undefined;

/** Looks at a request's prototype once. What is no request of Express's (in a test, say) is known for itself alone. */
function prototypeOf(request: object): Prototype {
  const prototype: object = Object.getPrototypeOf(request);
  if (prototype === last && lastKnown !== undefined) return lastKnown;
  let known = prototypes.get(prototype);
  if (known === undefined) {
    let owner: object | null = prototype;
    while (owner !== null && !Object.hasOwn(owner, "ip")) owner = Object.getPrototypeOf(owner);
    if (owner === null) return { owner: request, hasOwnIp: false, names: namesOf(request) };
    const ip = Object.getOwnPropertyDescriptor(owner, "ip")?.get;
    known = { owner, hasOwnIp: Object.hasOwn(owner, "ips") && ip?.name === "ip", names: namesOf(owner) };
    prototypes.set(prototype, known);
  }
  last = prototype;
  lastKnown = known;
  return known;
}

function namesOf(owner: object): Set<string> {
  let names = namesShown.get(owner);
  if (names === undefined) {
    names = new Set();
    namesShown.set(owner, names);
  }
  return names;
}

/**
 * Makes `req.rateLimit`, or what else it is called, read what core has decided: a getter on Express's own request prototype, as
 * `req.ip` is, costs a request nothing.
 * @throws FloodgateError where requests have another property of that name.
 */
export function showDecision(request: object, name: string): void {
  const { owner, names } = prototypeOf(request);
  if (names.has(name)) return;
  if (!(name in owner)) {
    Object.defineProperty(owner, name, {
      configurable: true,
      get(this: object) {
        return decisionOf(this, name);
      },
      set(this: object, value: unknown) {
        Object.defineProperty(this, name, { configurable: true, enumerable: true, writable: true, value });
      },
    });
  } else if (name !== "rateLimit") {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `rateLimit: \`decisionName\` is ${JSON.stringify(name)}, but requests have a property of that name already. Choose another, such as decisionName: "quota".`,
    );
  }
  names.add(name);
}
