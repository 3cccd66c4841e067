import type { Server } from "node:http";
import type { Decision, Limiter, Store } from "@floodgate/core";
import type { Promised, RateLimitOptions } from "@floodgate/core/adapter";
import type { Clock } from "@floodgate/core/store";

/** The framework-neutral view of a request. Each adapter description makes it from the framework's own request. */
export interface RequestView {
  readonly method: string;
  /** The full path, including mount paths. */
  readonly path: string;
  /** The body, parsed as JSON before any limit. */
  readonly body: unknown;
  /** The value of a header; the case of the name does not matter. */
  header(name: string): string | undefined;
  /** The decision that the adapter left on the request, state or context under `decisionName`. */
  decision(name: string): Decision | undefined;
}

/** The response of a route or of `onLimited`. */
export interface Reply {
  /** Default: the framework's, 200 for a route and 429 after a rejection. */
  readonly status?: number;
  /** Sent as JSON, unless there are `chunks`. */
  readonly body?: unknown;
  /** Sent one after the other, as text. */
  readonly chunks?: AsyncIterable<string>;
  /**
   * Bypass the framework's response handling. Express: `response.writeHead` and `response.end`. Koa: `ctx.respond = false` and the
   * same on `ctx.res`. Hono: a `Response` with immutable headers, such as one from `fetch("data:application/json,...")`.
   * A description that does not support it sends the reply like any other.
   */
  readonly raw?: boolean;
}

/** The options of `rateLimit`, with neutral functions. */
export interface LimitSetup extends RateLimitOptions<RequestView, string> {
  /** `undefined` keeps the default response. */
  readonly onLimited?: (request: RequestView, decision: Decision | undefined) => Promised<Reply | undefined>;
}

/** A route's handler. It may throw or return a promise. */
export type Handler = (request: RequestView, decision: Decision | undefined) => Promised<Reply>;

/** A part of an app; parts are mounted in order. A limit is an index into `Setup.limits`. */
export type Step =
  /** A middleware for all requests, or for those under `path`. */
  | { readonly limit: number; readonly path?: string }
  /** A route; `limits` run before its handler. */
  | { readonly route: string; readonly method?: "get" | "post"; readonly limits?: readonly number[]; readonly handler?: Handler }
  /** A middleware that rewrites the path prefix `rewrite` to `to`. */
  | { readonly rewrite: string; readonly to: string }
  /** A sub-router under a path. With `app`: a sub-app, in frameworks that have both. */
  | { readonly router: string; readonly steps: readonly Step[]; readonly app?: boolean };

/**
 * The framework's own proxy setting. "one hop" trusts one proxy, which appends its caller's address. "left-most" takes the first
 * forwarded address, which anyone can forge.
 */
export type ProxySetting = "one hop" | "forgeable";

/** The app to build. It listens on a free loopback port and parses JSON bodies first. */
export interface Setup {
  /** The address to listen on. Default: 127.0.0.1. */
  readonly host?: string;
  /** One middleware per limit, made once even if it is mounted several times. */
  readonly limits: readonly LimitSetup[];
  /** Reproduces a common mistake: each request makes a new middleware. See `madeAnew`. */
  readonly anew?: boolean;
  readonly steps: readonly Step[];
  /** Listen with `node:http2`, without TLS. Set only if the adapter has `http2`. */
  readonly http2?: boolean;
  /** Default: no proxy. */
  readonly proxy?: ProxySetting;
  /** The handler of every route. */
  readonly handler: Handler;
  /** Call it with each error that reaches the framework's error handling, which then responds with 500. */
  readonly onError: (error: unknown) => void;
  /**
   * Call it from an outermost middleware, with a function that reads response headers as that middleware sees them: after
   * `await next()` in Koa and Hono, when the response finishes in Express. Set only if the adapter has `outer`.
   */
  readonly outer?: (header: (name: string) => string | undefined) => void;
  /** Send the headers of each response in a middleware before the limits, and leave the body to the handler. Set only if the adapter has `begins`. */
  readonly begins?: boolean;
  /** Response headers that a middleware before the limits sets, by names in lower case. Set only if the adapter has `presets`. */
  readonly presets?: Readonly<Record<string, string>>;
}

/** The properties of a middleware. */
export interface Carried {
  readonly limiter: Limiter;
  readonly limiters: ReadonlyMap<string, Limiter>;
  close(): void;
}

/** A listening app, and its middlewares in the order of `Setup.limits`. */
export interface Running {
  readonly server: Server;
  readonly limits: readonly Carried[];
}

/** Describes one framework to the suite. */
export interface Adapter {
  readonly name: string;
  /** The proxy settings that the framework supports. */
  readonly proxies: readonly ProxySetting[];
  /** Whether `start` supports `Setup.outer`. */
  readonly outer?: boolean;
  /** Whether `start` supports `Setup.begins`. */
  readonly begins?: boolean;
  /** Whether `start` supports `Setup.presets`. */
  readonly presets?: boolean;
  /** Whether the adapter can tell when a response has been sent, not only when its body has been read. */
  readonly seesSending?: boolean;
  /** Whether `start` supports `Setup.http2`. */
  readonly http2?: boolean;
  /** Whether the framework answers no HEAD request of HTTP/2, limited or not, as Koa 2. */
  readonly mutesHead?: boolean;
  /** The Content-Type of a problem, if the framework allows no other. Default `application/problem+json`. */
  readonly problemType?: string;
  /** Whether a middleware before all routes knows the pattern of the route that will match. */
  readonly routesAhead?: boolean;
  /** Whether the decision becomes a property of the framework's request, which `decisionName` names. */
  readonly marksRequests?: boolean;
  /** Makes the adapter's default store, with the suite's clock. */
  store(clock: Clock): Store<"sync">;
  /** Starts an app. Rejects with whatever `rateLimit` throws. */
  start(setup: Setup): Promise<Running>;
}
