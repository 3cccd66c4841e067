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
