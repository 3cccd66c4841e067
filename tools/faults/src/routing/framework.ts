import type { RequestListener } from "node:http";
import type { Rule } from "@floodgate/core";
import type { RateLimitOptions } from "@floodgate/core/adapter";
import { express4, express5 } from "./express.js";
import { hono } from "./hono.js";
import { koa, koaRouter } from "./koa.js";
import type { Abilities, Level } from "./plan.js";

/** Rules that fit every framework's requests. */
export type Rules = readonly Rule<unknown>[];

export type Limit = RateLimitOptions<unknown>;

/** What an app is built with. */
export interface Parts {
  readonly limit: Limit;
  /** To be told each handler that a request reaches, by its name. A handler passes the request on. */
  readonly reach: (name: string) => void;
  /** Where files are. */
  readonly root: string;
}

export interface Framework {
  readonly name: string;
  readonly abilities: Abilities;
  /** Whether requests come over HTTP/2 too. */
  readonly http2: boolean;
  /** Undefined where the framework refuses such an app. */
  build(plan: Level, parts: Parts): RequestListener | undefined;
}

export const frameworks: readonly Framework[] = [express4, express5, koa, koaRouter, ...hono];
