import type { RequestPath } from "./path.js";

/** How an adapter reads its framework's requests: all that it says about them. */
export interface RequestReader<Req> {
  /** An object that is the same for one HTTP request each time a middleware meets it. */
  identity(request: Req): object;
  /** Whether that object takes a new property cheaply. It does not if the framework has changed its prototype. */
  readonly plainIdentity?: boolean;
  /** An object that is the same for all requests of one app, and another for another app. */
  app?(request: Req): object | undefined;
  /**
   * Makes the decision show on the request under this name, where a framework needs that.
   * @throws FloodgateError if requests have another property of that name.
   */
  showDecision?(request: Req, decisionName: string): void;
  method(request: Req): string;
  /** The full path that the routers follow, mounts included; each path that it may be if that is not certain. */
  path(request: Req): RequestPath;
  /** The value of a header; several lines are joined by ", ". */
  header(request: Req, lowerCaseName: string): string | undefined;
  /** The address at the other end of the connection. */
  remoteAddress(request: Req): string | undefined;
  /** The client's address by the framework's own proxy setting. Throws if anyone can forge it under that setting. */
  clientIp(request: Req): string | undefined;
  /** Whether that setting trusts a proxy; always true where no proxy can be missing. */
  trustsProxy(request: Req): boolean;
  /** The pattern that matched, if the framework knows it; with the patterns of mounts if it knows those. */
  route(request: Req): string | undefined;
}

/** The value of a header of Node's own request, for a reader's `header`. */
export function nodeHeader(
  { headers }: { readonly headers: { readonly [name: string]: string | string[] | undefined } },
  lowerCaseName: string,
): string | undefined {
  const value = headers[lowerCaseName];
  if (Array.isArray(value)) return value.join(", ");
  // A name such as `constructor` finds what every object inherits.
  return typeof value === "string" ? value : undefined;
}
