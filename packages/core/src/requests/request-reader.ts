import type { DescriptorRules } from "../rules/descriptor-rule.js";
import type { Descriptor } from "./descriptor.js";
import type { CostFunction } from "./functions.js";
import type { RequestPath } from "./path.js";

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
  readonly socket: { readonly remoteAddress?: string | undefined; readonly destroyed?: boolean };
}

/** What a reader reads of Node's request. */
type NodeReader<Req> = Pick<RequestReader<Req>, "method" | "header" | "remoteAddress"> & { hasLeft(request: Req): boolean };

/** Reads requests that are Node's, such as those of Express. */
export const nodeReader: NodeReader<NodeMessage> = {
  method: ({ method }) => method ?? "GET",
  header: nodeHeader,
  remoteAddress: ({ socket }) => socket.remoteAddress,
  // Requests in tests may have no socket.
  hasLeft: ({ socket }) => socket?.destroyed === true,
};

/** Reads requests that have one of Node. @param of returns it. */
export function nodeReaderOf<Req>(of: (request: Req) => NodeMessage): NodeReader<Req> {
  return {
    method: (request) => of(request).method ?? "GET",
    header: (request, name) => nodeHeader(of(request), name),
    remoteAddress: (request) => of(request).socket.remoteAddress,
    hasLeft: (request) => nodeReader.hasLeft(of(request)),
  };
}

/** The pattern of a request's route in Express and `router`. Neither tells which of several paths has matched, so all count as one. */
export function routePattern({ route }: NodeMessage & { readonly route?: { readonly path?: unknown } }): string | undefined {
  const path = route?.path;
  if (typeof path === "string" || path === undefined) return path;
  const paths = [path].flat();
  return paths.every((one) => typeof one === "string") ? paths.join(", ") : undefined;
}

/** The value of a header of Node's own request, or of a response. */
export function nodeHeader({ headers }: Pick<NodeMessage, "headers">, lowerCaseName: string): string | undefined {
  const value = headers[lowerCaseName];
  if (Array.isArray(value)) return value.join(", ");
  // A name such as `constructor` finds what every object inherits.
  return typeof value === "string" ? value : undefined;
}
