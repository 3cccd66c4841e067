import type { Server } from "node:http";
import type { Decision, Limiter, Store } from "@floodgate/core";
import type { Promised, RateLimitOptions } from "@floodgate/core/adapter";
import type { Clock } from "@floodgate/core/store";

/** What neutral functions see of a request; a description makes it of the framework's own. */
export interface RequestView {
  readonly method: string;
  /** The full path, mounts included. */
  readonly path: string;
  /** The body, parsed as JSON before any limit. */
  readonly body: unknown;
  /** The value of a header, whatever the case of its name. */
  header(name: string): string | undefined;
  /** The decision that the app finds on its request, state or context under a name of its own (`decisionName`). */
  decision(name: string): Decision | undefined;
}

/** What a route or `onLimited` answers. */
export interface Reply {
  /** Without it the framework's own choice stands: 200 of a route, 429 where a limit rejected. */
  readonly status?: number;
  /** Sent as JSON, unless there are `chunks`. */
  readonly body?: unknown;
  /** Sent one after the other, as text. */
  readonly chunks?: AsyncIterable<string>;
  /**
   * Sent past the framework's own way to answer: in Express by `response.writeHead` and `response.end`, in Koa by
   * `ctx.respond = false` and the same on `ctx.res`, in Hono as a `Response` with immutable headers, as one from `fetch` is
   * (`fetch("data:application/json,...")` makes one). A description that does not know it sends it like any other.
   */
  readonly raw?: boolean;
}

/** The options of `rateLimit`, with neutral functions. */
export interface LimitSetup extends RateLimitOptions<RequestView, string> {
  /** `undefined` answers nothing. */
  readonly onLimited?: (request: RequestView, decision: Decision | undefined) => Promised<Reply | undefined>;
}

/** A route's handler. It may throw, and it may take its time. */
export type Handler = (request: RequestView, decision: Decision | undefined) => Promised<Reply>;

/** What an app is made of, in this order. Limits are numbers: places in `Setup.limits`. */
export type Step =
  /** A middleware for all requests, or for those under a path. */
  | { readonly limit: number; readonly path?: string }
  /** A route, with limits of its own before its handler. */
  | { readonly route: string; readonly method?: "get" | "post"; readonly limits?: readonly number[]; readonly handler?: Handler }
  /** A middleware that has the app serve paths that begin with `rewrite` as those that begin with `to` instead. */
  | { readonly rewrite: string; readonly to: string }
  /** A sub-router under a path; with `app` an app of its own that is mounted there, where the framework tells one from the other. */
  | { readonly router: string; readonly steps: readonly Step[]; readonly app?: boolean };

/**
 * The framework's own proxy setting: one proxy that appends the address which called it, or the left-most forwarded address,
 * which anyone can forge.
 */
export type ProxySetting = "one hop" | "forgeable";

/** The app to build. It listens on a spare port of loopback and parses JSON bodies before anything else. */
export interface Setup {
  /** The address to listen on; left out: 127.0.0.1. */
  readonly host?: string;
  /** One middleware each, made once however often it is mounted. */
  readonly limits: readonly LimitSetup[];
  /** A mistake that apps make: each limit is made anew for each request. `madeAnew` makes such a middleware of what makes one. */
  readonly anew?: boolean;
  readonly steps: readonly Step[];
  /** Listen with `node:http2`, without TLS. Only given to descriptions that have `http2`. */
  readonly http2?: boolean;
  /** Left out: no proxy. */
  readonly proxy?: ProxySetting;
  /** What a route does that has no handler of its own. */
  readonly handler: Handler;
  /** To be told each error that reaches the framework's error handling, which then answers 500. */
  readonly onError: (error: unknown) => void;
  /**
   * To be told the response's headers by a middleware around all steps once they have run, as that middleware sees them:
   * after `await next()` in Koa and Hono, when the response finishes in Express. Only given to descriptions that have `outer`.
   */
  readonly outer?: (header: (name: string) => string | undefined) => void;
}

/** What a middleware carries. */
export interface Carried {
  readonly limiter: Limiter;
  readonly limiters: ReadonlyMap<string, Limiter>;
  close(): void;
}

/** An app that listens, and the middlewares of its limits in their order. */
export interface Running {
  readonly server: Server;
  readonly limits: readonly Carried[];
}

/** One framework, described to the suite. */
export interface Adapter {
  readonly name: string;
  /** The proxy settings that the framework has. */
  readonly proxies: readonly ProxySetting[];
  /** Whether `Setup.outer` is understood. */
  readonly outer?: boolean;
  /** Whether the adapter knows when a response has been sent, not only when its body has been read. */
  readonly seesSending?: boolean;
  /** Whether `Setup.http2` is understood. */
  readonly http2?: boolean;
  /** The adapter's default store, with a clock. */
  store(clock: Clock): Store<"sync">;
  /** Rejects with what `rateLimit` throws. */
  start(setup: Setup): Promise<Running>;
}
