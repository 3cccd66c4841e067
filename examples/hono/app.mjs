import { leakyBucket, rateLimit, slidingWindowLog } from "@floodgate/hono";
import { Hono } from "hono";

/** A Hono app with the limits that most apps start with, the same on every runtime. */
export function createApp() {
  const app = new Hono();

  // Logins: 3 tries a minute per address and user. Successful ones do not count.
  const login = rateLimit({
    name: "login",
    policy: slidingWindowLog({ limit: 3, window: "1m" }),
    key: async (c, { ip }) => [ip, userOf(await bodyOf(c)) ?? ""],
    refundWhen: (status) => status < 400,
  });
  app.post("/login", login, async (c) => {
    const body = await bodyOf(c);
    if (userOf(body) === undefined) return c.json({ error: "Send JSON with a user and a password." }, 400);
    const ok = body.password === "open sesame";
    return c.json({ ok }, ok ? 200 : 401);
  });

  // Slow work: a queue that releases two requests a second.
  const slow = rateLimit({ name: "slow", policy: leakyBucket({ capacity: 4, leak: 2, every: "1s" }), key: "global" });
  app.get("/slow", slow, (c) => c.json({ done: true }));

  // Everything else: 5 requests in ten seconds per client IP.
  app.use(rateLimit({ name: "per-ip", limit: 5, window: "10s" }));
  app.get("/", (c) => c.json({ hello: "world", remaining: c.get("rateLimit").remaining }));

  return app;
}

/** The JSON of a request; undefined if it is not JSON. Hono keeps it, so it may be asked for twice. */
function bodyOf(c) {
  return c.req.json().catch(() => undefined);
}

/** The user that a body names. A client may send anything in its place, so only a string is taken. */
function userOf(body) {
  return typeof body?.user === "string" ? body.user : undefined;
}
