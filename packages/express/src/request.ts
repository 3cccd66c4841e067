import { type Decision, FloodgateError } from "@floodgate/core";
import { nodeHeader, parsedPath, type RequestReader, trustsEverybody } from "@floodgate/core/adapter";
import { prototypeOf, showDecision } from "./prototype.js";

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
  app: (request) => request.app,
  showDecision,
  method: (request) => request.method,
  // Some targets (`/\\a@#`, say) have no path, whatever the types say. No route serves them.
  path: ({ baseUrl, path, url, originalUrl }) => parsedPath(baseUrl, path ?? "/", url, originalUrl),
  header: nodeHeader,
  remoteAddress: (request) => request.socket.remoteAddress,
  clientIp(request) {
    const trust = request.app.get("trust proxy");
    // Without a proxy Express's `req.ip` is the socket's address, at the price of reading the forwarded ones first.
    if (!trust && isOwnIp(request)) return request.socket.remoteAddress;
    if (trust && isForgeable(request.app.get("trust proxy fn"))) {
      throw new FloodgateError(
        "FLOODGATE_FORGEABLE_CLIENT_IP",
        `Express's \`trust proxy\` is ${settingText(trust)}, so the client IP is the left-most forwarded address, which anyone can forge. Write app.set("trust proxy", 1) for one proxy in front, or the addresses of your proxies: app.set("trust proxy", "loopback, 10.0.0.0/8"). Or give rateLimit a \`clientIp\`.`,
      );
    }
    return request.ip;
  },
  // An address of the app's own is whatever the app makes it.
  trustsProxy: (request) => Boolean(request.app.get("trust proxy")) || !isOwnIp(request),
  // The mount path of a router holds the values of its parameters, and a raw URL is never a key: the route's own pattern is it.
  route(request) {
    const path: unknown = request.route?.path;
    return typeof path === "string" ? path : undefined;
  },
};

/** Whether `req.ip` is Express's own. */
function isOwnIp(request: ExpressRequest): boolean {
  return prototypeOf(request).hasOwnIp && !Object.hasOwn(request, "ip");
}

const forgeable = new WeakMap<object, boolean>();

/** Whether what Express has made of its setting, which it does once a setting, trusts everyone. */
function isForgeable(trust: unknown): boolean {
  if (typeof trust !== "function") return false;
  let known = forgeable.get(trust);
  if (known === undefined) {
    known = trustsEverybody(trust as (address: string, hop: number) => unknown);
    forgeable.set(trust, known);
  }
  return known;
}

function settingText(trust: unknown): string {
  if (typeof trust === "function") return "a function that trusts everyone";
  return typeof trust === "boolean" || typeof trust === "number" ? `${trust}` : `${JSON.stringify(trust)}, which is everyone`;
}
