import { rateLimit } from "@floodgate/koa";
import Koa from "koa";
import koaRateLimit from "koa-ratelimit";
import { answer, middlewaresOf, rejection, twoHeaders, windowMs } from "./common.mjs";

function noop(ctx, next) {
  for (const name in twoHeaders) ctx.set(name, twoHeaders[name]);
  return next();
}

function rejectingNoop(ctx) {
  ctx.status = 429;
  for (const name in rejection.headers) ctx.set(name, rejection.headers[name]);
  ctx.body = rejection.body;
}

const peer = (limit) => koaRateLimit({ driver: "memory", db: new Map(), duration: windowMs, max: limit });

const middlewares = middlewaresOf({ noop, rejectingNoop, rateLimit, peer });

export function listener(kind) {
  const app = new Koa();
  const limit = middlewares[kind]();
  if (limit !== undefined) app.use(limit);
  app.use((ctx) => {
    ctx.body = answer;
  });
  return app.callback();
}
