import { rateLimit } from "@floodgate/koa";
import Koa from "koa";
import koaRateLimit from "koa-ratelimit";
import { answer, listenerOf, rejection, twoHeaders, windowMs } from "./common.mjs";

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

export const listener = listenerOf({ noop, rejectingNoop, rateLimit, peer }, (limit) => {
  const app = new Koa();
  if (limit !== undefined) app.use(limit);
  app.use((ctx) => {
    ctx.body = answer;
  });
  return app.callback();
});
