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
  import type { D1Database, DurableObjectNamespace, Hyperdrive } from "@cloudflare/workers-types";

  export const env: { readonly FLOODGATE: DurableObjectNamespace; readonly DB: D1Database; readonly HYPERDRIVE: Hyperdrive };
  export function waitUntil(work: Promise<unknown>): void;
}

/** Of Deno's own types, what the pages use. The tests of packages/store-database compile the driver with all of them. */
declare namespace Deno {
  function openKv(): Promise<import("@floodgate/store-database/deno-kv").KvDatabase>;
  function serve(handler: (request: Request) => Response | Promise<Response>): unknown;
}
