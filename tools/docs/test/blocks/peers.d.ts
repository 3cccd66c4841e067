/** Its published types know neither ioredis 6 nor a body that is an object. */
declare module "koa-ratelimit" {
  import type { Context, Middleware } from "koa";

  export default function ratelimit(options: {
    readonly id?: (ctx: Context) => string | false;
    readonly whitelist?: (ctx: Context) => boolean;
    readonly blacklist?: (ctx: Context) => boolean;
    readonly [option: string]: unknown;
  }): Middleware;
}

/** What `wrangler types` declares: the bindings. */
declare module "cloudflare:workers" {
  import type { D1Database, DurableObjectNamespace } from "@cloudflare/workers-types";

  export const env: { readonly FLOODGATE: DurableObjectNamespace; readonly DB: D1Database };
  export function waitUntil(work: Promise<unknown>): void;
}
