import type { Decision } from "@floodgate/core";
import type { HeaderTarget, NodeResponse } from "@floodgate/core/adapter";

/** The used part of Node's HTTP/1 or HTTP/2 response. */
export interface KoaResponse extends NodeResponse, HeaderTarget {
  getHeaderNames(): string[];
}

/**
 * The context that functions of the app get, unless they name their own type: `key: (ctx: Koa.Context) => ...`. Typed by structure, so that
 * it fits Koa 2 and 3, and apps without Koa's types. Properties that the app adds are untyped.
 */
export interface KoaContext {
  app: {
    proxy: boolean;
    maxIpsCount: number;
    /** The prototype of the app's contexts. */
    context?: object;
    on(event: "error", listener: (error: unknown, ctx: unknown) => void): unknown;
  };
  req: { headers: { [name: string]: string | string[] | undefined }; socket: { remoteAddress?: string | undefined } };
  res: KoaResponse;
  // biome-ignore lint/suspicious/noExplicitAny: only the app knows it
  state: any;
  method: string;
  url: string;
  originalUrl: string;
  path: string;
  // biome-ignore lint/suspicious/noExplicitAny: what routers, body parsers and the app put there is only the app knows it
  params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  query: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  request: { body?: any; [name: string]: any };
  ip: string;
  status: number;
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever Koa sends
  body: any;
  respond?: boolean | undefined;
  readonly headerSent: boolean;
  readonly writable: boolean;
  get(header: string): string;
  set(header: string, value: string): void;
  throw(status: number, ...details: (string | object)[]): never;
  // biome-ignore lint/suspicious/noExplicitAny: as in Koa's own types
  [name: string]: any;
}

/** What a limit adds to `ctx.state`. An `object`, so that a state without it fits too. */
export type RateLimitState<Name extends string = "rateLimit"> = object & {
  /** The decision of the last rate limit of this request; undefined if none applied. */
  [Property in Name]?: Decision;
};
