import type { Decision } from "@floodgate/core";
import type { HeaderTarget, NodeMessage, NodeResponse } from "@floodgate/core/adapter";

// biome-ignore lint/suspicious/noExplicitAny: only the app knows what it, its routers and its body parsers put there
type Any = any;

type ErrorListener = (error: unknown, ctx: unknown) => void;

/** Members of a context that are strings. */
type Texts = "method" | "url" | "originalUrl" | "path" | "ip" | "type";

/**
 * The context that functions of the app get, unless they name their own type: `key: (ctx: Koa.Context) => ...`. Typed by structure, so that
 * it fits Koa 2 and 3, and apps without Koa's types. Properties that the app adds are untyped.
 */
export interface KoaContext extends Record<Texts, string> {
  app: { proxy: boolean; maxIpsCount: number; context?: object; on(event: "error", listener: ErrorListener): unknown };
  req: NodeMessage;
  /** The used part of Node's HTTP/1 or HTTP/2 response. */
  res: NodeResponse & HeaderTarget & { getHeaderNames(): string[] };
  request: { body?: Any; [name: string]: Any };
  state: Any;
  params?: Any;
  query: Any;
  body: Any;
  status: number;
  respond?: boolean | undefined;
  readonly headerSent: boolean;
  readonly writable: boolean;
  get(header: string): string;
  set(header: string, value: string): void;
  throw(status: number, ...details: (string | object)[]): never;
  [name: string]: Any;
}

/** What a limit adds to `ctx.state`. An `object`, so that a state without it fits too. */
export type RateLimitState<Name extends string = "rateLimit"> = object & {
  /** The decision of the last rate limit of this request; undefined if none applied. */
  [Property in Name]?: Decision;
};
