import type { DescriptorRules } from "../rules/descriptor-rule.js";
import type { Descriptor } from "./descriptor.js";
import type { CostFunction } from "./functions.js";
import type { PossiblePath, RequestPath } from "./path.js";

/** Reads descriptors of Envoy's rate limit service, and the rules that count them. */
export interface DescriptorReader<Req> extends DescriptorRules {
  /** The descriptor that the service is asked about; undefined for an HTTP request. */
  of(request: Req): Descriptor | undefined;
}

/** How an adapter reads the requests of its framework. */
export interface RequestReader<Req> {
  /**
   * An object that is the same each time a middleware meets the same HTTP request. It gets a property whose name is a symbol. Default: the
   * request, which must be an object then.
   */
  identity?(request: Req): object;
  /** An object that identifies the app of a request. */
  app?(request: Req): object | undefined;
  method(request: Req): string;
  /** The full path that the routers follow, mounts included; or all possible paths, if it is not certain. */
  path(request: Req): RequestPath;
  /** The value of a header; several lines are joined by ", ". */
  header(request: Req, lowerCaseName: string): string | undefined;
  /** The address at the other end of the connection. */
  remoteAddress(request: Req): string | undefined;
  /** The client's address by the framework's own proxy setting. Throws if anyone can forge it under that setting. */
  clientIp(request: Req): string | undefined;
  /** Whether that setting trusts a proxy. Always true if the platform needs no such setting. */
  trustsProxy(request: Req): boolean;
  /** Whether the client has disconnected. Its address may be unknown then, which is no error. Default: unknown. */
  hasLeft?(request: Req): boolean;
  /** The pattern of the matched route, if the framework knows it; with the patterns of mounts, if it knows them. */
  route(request: Req): string | undefined;
  /** A cost that `settle` may name beside the app's `costs`. Only the gateway's proxy has some: headers of the upstream's response. */
  cost?(name: string): CostFunction<Req> | undefined;
  /** For requests to Envoy's rate limit service. Only the gateway has it. */
  readonly descriptors?: DescriptorReader<Req>;
  /** Throws if a rule needs something that these requests do not have. Gets its options before they are checked. */
  checkRule?(where: string, rule: object): void;
  /** Whether decisions are events. Default true. With `false`, as in a simulator that reads outcomes, only `exempt` and `missing-key` are. */
  readonly decisionEvents?: boolean;
}

/** The used part of Node's request, HTTP/1 or HTTP/2. */
export interface NodeMessage {
  readonly method?: string | undefined;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  readonly socket: NodeConnection;
}

/** The used part of a socket. */
export interface NodeConnection {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
  readonly destroyed?: boolean;
}

/** What stands for an address that was lost with its connection. It is no address, and no app passes it. */
export const lostAddress = "?";

/**
 * Whether the client has disconnected. After a reset, the socket has only its own address until Node notices. A Unix socket has neither.
 * Requests in tests may have no socket.
 */
export function nodeHasLeft({ socket }: { readonly socket?: NodeConnection | undefined }): boolean {
  return !!socket?.destroyed || (!!socket?.localAddress && !socket.remoteAddress);
}

/** What a reader reads of Node's request. */
type NodeReader<Req> = Pick<RequestReader<Req>, "method" | "header" | "remoteAddress"> & { hasLeft(request: Req): boolean };

/** Reads requests that are Node's, such as those of Express. */
export const nodeReader: NodeReader<NodeMessage> = {
  method: ({ method }) => method ?? "GET",
  header: nodeHeader,
  remoteAddress: ({ socket }) => socket.remoteAddress,
  hasLeft: nodeHasLeft,
};

/** Reads requests that have one of Node. @param of returns it. */
export function nodeReaderOf<Req>(of: (request: Req) => NodeMessage): NodeReader<Req> {
  return {
    method: (request) => of(request).method ?? "GET",
    header: (request, name) => nodeHeader(of(request), name),
    remoteAddress: (request) => of(request).socket.remoteAddress,
    hasLeft: (request) => nodeHasLeft(of(request)),
  };
}

/** The pattern of a request's route in Express and `router`. Neither tells which of several paths has matched, so all count as one. */
export function routePattern({ route }: NodeMessage & { readonly route?: { readonly path?: unknown } }): string | undefined {
  const path = route?.path;
  if (typeof path === "string") return path;
  const paths = [path].flat();
  return paths.every((one) => typeof one === "string") ? paths.join(", ") : undefined;
}

/** The value of a header of Node's own request, or of a response. Clients of HTTP/2 send `:authority` in place of `Host`. */
export function nodeHeader({ headers }: Pick<NodeMessage, "headers">, lowerCaseName: string): string | undefined {
  const value = headers[lowerCaseName] ?? (lowerCaseName === "host" ? headers[":authority"] : undefined);
  if (Array.isArray(value)) return value.join(", ");
  // A name such as `constructor` finds what every object inherits.
  return typeof value === "string" ? value : undefined;
}

/**
 * The path that routers follow if they parse targets with Node's `url.parse`, as Express and Koa do; or all possible paths. `url.parse`
 * escapes some characters if a target has a `#`, white space or a host. Then an inner router may see another path, because it removes
 * its parsed mount path from the target as sent.
 * @param base the prefix that routers have removed so far.
 * @param path the rest of the path, as parsed or as sent.
 * @param target the rest of the request target, with its query.
 * @param sentTarget the request target that the client sent.
 */
export function parsedPath(base: string, path: string, target: string, sentTarget: string): RequestPath {
  const routed = base + path;
  const isAsSent = sentTarget.length === base.length + target.length && sentTarget.startsWith(base) && sentTarget.endsWith(target);
  if (isAsSent && routed.startsWith("/") && target.startsWith(path) && !path.includes("//") && !parsedAnew.test(target)) return routed;
  const possible: PossiblePath[] = [routed];
  // If the app rewrites paths, a rule may use the rewritten path or the sent one.
  const sent = sentPath(sentTarget);
  if (sent !== routed && `${sent}/` !== routed) possible.push(sent);
  const known = certainStart(target);
  if (known !== undefined) possible.push({ path: base + known, unknown: "after" });
  const knownOfSent = target === sentTarget ? undefined : certainStart(sentTarget);
  if (knownOfSent !== undefined) possible.push({ path: knownOfSent, unknown: "after" });
  return possible.length === 1 ? routed : possible;
}

/** A target with one of these is left to `url.parse`. */
const parsedAnew = /[\t\n\f\r #\xa0\ufeff]/;

/**
 * The path of a request target, as written. Fastify's router never looks at its first character, so `*login` is `/login` there. Of
 * `http:///login` it is `//login`, because some servers read a host after three slashes too.
 */
export function sentPath(target: string): string {
  return `/${/^(?:[a-z][a-z\d+.-]*:(?:\/\/[^/?#]+|\/(?=\/)))?[^?#]?([^?#]*)/i.exec(target)?.[1] ?? ""}`;
}

/** The first segments, on which all routers agree; undefined if they agree on the whole path. */
function certainStart(target: string): string | undefined {
  // Of `http://h:80a`, the path is `/:80a` to `url.parse`.
  const host = /^(?:(?=[/*])|[a-z][a-z\d+.-]*:\/\/(?:[\w.:@-]*@)?(?:\[[\da-f:.]+\]|[\w.-]*)(?::\d*)?(?=[/?#]|$))/i.exec(target)?.[0];
  if (host === undefined) return "";
  if (host === "" && !parsedAnew.test(target)) return undefined;
  const path = sentPath(target.slice(host.length));
  // Characters that `url.parse` escapes or reads as a slash, and what it may read as a host.
  const unlike = path.search(/[\s"'<>\\^`{|}]|\/\//);
  return unlike < 0 ? undefined : path.slice(0, path.lastIndexOf("/", unlike));
}

/**
 * All possible paths of a request whose target has lost a prefix, if it is not known whether a mount or a rewrite of the app's removed it.
 * @param path the path that is left.
 * @param inner that path with the prefix of the innermost mount, if that is known. The app may have rewritten it.
 */
export function mountedPaths(sentTarget: string, path: string, inner: string | undefined): readonly PossiblePath[] {
  const sent = sentPath(sentTarget);
  if (inner === undefined) return [sent, path === "/" ? path : { path, unknown: "before" }];
  const possible: PossiblePath[] = [sent, path, inner];
  if (path !== sent && inner !== sent && inner !== `${sent}/`) possible.push({ path, unknown: "before" });
  return possible;
}

/** A slash, and a scheme or a character that `url.parse` trims: what stands after the slash is a URL to it. */
const urlInPath = /\/(?:[\0-\x20\xa0\ufeff]|[a-z\d.+-]+:)/i;

/** Of a path with more schemes nothing is known from the next one on. */
const maxSchemes = 4;

/**
 * Other possible paths, if a mount path may end in a slash. Such a mount takes the slash too, and what is left is parsed as a URL: of `x:/login`
 * and `x://host/login` the path is `/login`. That of `x:host/login` is too, but `/items/1:cancel` is a usual path.
 * @param base the prefix that routers have removed so far.
 * @param hasSlashMount whether a mount path ends in a slash. Else usual paths are left out.
 */
export function reparsedPaths(base: string, path: string, hasSlashMount: boolean): PossiblePath[] {
  if (!urlInPath.test(path)) return [];
  const possible: PossiblePath[] = [];
  const trimmed = path.search(/\/[\0-\x20\xa0\ufeff]/);
  if (trimmed >= 0) possible.push({ path: base + path.slice(0, trimmed), unknown: "after" });
  for (const { 0: scheme, 1: slashes, 2: host, index } of path.matchAll(/\/[a-z\d.+-]+:(\/\/)?([^/]*)/gi)) {
    if (host !== "" && slashes === undefined && !hasSlashMount) continue;
    const before = base + path.slice(0, index);
    if (possible.length >= maxSchemes) {
      possible.push({ path: before, unknown: "after" });
      break;
    }
    possible.push(before + path.slice(index + scheme.length));
  }
  return possible;
}
