import { leakyBucket, rateLimit, slidingWindowLog } from "@floodgate/koa";
import { bodyParser } from "@koa/bodyparser";
import Router from "@koa/router";
import Koa from "koa";

/** A Koa app with the limits that most apps start with. */
export function createApp() {
  const app = new Koa();
  app.use(bodyParser());
  const router = new Router();

  // Logins: 3 tries a minute per address and user. Successful ones do not count.
  const login = rateLimit({
    name: "login",
    policy: slidingWindowLog({ limit: 3, window: "1m" }),
    key: (ctx, { ip }) => [ip, userOf(ctx.request.body) ?? ""],
    refundWhen: (status) => status < 400,
  });
  router.post("/login", login, (ctx) => {
    ctx.assert(userOf(ctx.request.body) !== undefined, 400, "Send JSON with a user and a password.");
    const ok = ctx.request.body.password === "open sesame";
    ctx.status = ok ? 200 : 401;
    ctx.body = { ok };
  });

  // Slow work: a queue that releases two requests a second.
  const slow = rateLimit({ name: "slow", policy: leakyBucket({ capacity: 4, leak: 2, every: "1s" }), key: "global" });
  router.get("/slow", slow, (ctx) => {
    ctx.body = { done: true };
  });
  app.use(router.routes());

  // Everything else: 5 requests in ten seconds per client IP.
  app.use(rateLimit({ name: "per-ip", limit: 5, window: "10s" }));
  const home = new Router();
  home.get("/", (ctx) => {
    ctx.body = { hello: "world", remaining: ctx.state.rateLimit.remaining };
  });
  app.use(home.routes());

  return app;
}

/** The user that a body names. A client may send anything in its place, so only a string is taken. */
function userOf(body) {
  return typeof body?.user === "string" ? body.user : undefined;
}
