import type { RequestPath } from "../rules/path.js";

/** How a framework's request is read: all that an adapter has to say about it. */
export interface RequestReader<Req> {
  /** An object that is the same for one HTTP request however often it is met. */
  identity(request: Req): object;
  /** Whether that object takes a new property as cheaply as most do: not one whose prototype the framework has changed. */
  readonly plainIdentity?: boolean;
  /** An object that is the same for all requests of one app, and another for another app. */
  app?(request: Req): object | undefined;
  method(request: Req): string;
  /** The full path that the routers follow, mounts included; all that it may be where that is not certain. */
  path(request: Req): RequestPath;
  /** A header's value, several lines joined by ", ". */
  header(request: Req, lowerCaseName: string): string | undefined;
  /** The address at the other end of the connection. */
  remoteAddress(request: Req): string | undefined;
  /** The client's address as the framework's own proxy setting sees it; throws where that setting is forgeable. */
  clientIp(request: Req): string | undefined;
  /** Whether that setting believes what a proxy says of the client; always so where no proxy can be missing. */
  trustsProxy(request: Req): boolean;
  /** The pattern that matched, where the framework knows it, mounts included if it knows those. */
  route(request: Req): string | undefined;
}
