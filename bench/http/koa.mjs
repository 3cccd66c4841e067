import { rateLimit } from "@floodgate/koa";
import Koa from "koa";
import koaRateLimit from "koa-ratelimit";
import { answer, neverReached, ours, twoHeaders, windowMs } from "./common.mjs";

function noop(ctx, next) {
  for (const name in twoHeaders) ctx.set(name, twoHeaders[name]);
  return next();
}

const middlewares = {
  nothing: () => undefined,
  noop: () => noop,
  allowed: () => rateLimit(ours.allowed),
  denied: () => rateLimit(ours.denied),
  peer: () => koaRateLimit({ driver: "memory", db: new Map(), duration: windowMs, max: neverReached }),
};

export function start(kind, host) {
  const app = new Koa();
  const limit = middlewares[kind]();
  if (limit !== undefined) app.use(limit);
  app.use((ctx) => {
    ctx.body = answer;
  });
  return app.listen(0, host);
}
