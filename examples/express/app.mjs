import { leakyBucket, rateLimit, slidingWindowLog } from "@floodgate/express";
import express from "express";

/** An Express app with the limits that most apps start with. */
export function createApp() {
  const app = express();
  app.use(express.json());

  // Logins: 3 tries a minute per address and user. Successful ones do not count.
  const login = rateLimit({
    name: "login",
    policy: slidingWindowLog({ limit: 3, window: "1m" }),
    key: (req, { ip }) => [ip, userOf(req.body) ?? ""],
    refundWhen: (status) => status < 400,
  });
  app.post("/login", login, (req, res) => {
    if (userOf(req.body) === undefined) {
      res.status(400).json({ error: "Send JSON with a user and a password." });
      return;
    }
    const ok = req.body.password === "open sesame";
    res.status(ok ? 200 : 401).json({ ok });
  });

  // Slow work: a queue that releases two requests a second.
  const slow = rateLimit({ name: "slow", policy: leakyBucket({ capacity: 4, leak: 2, every: "1s" }), key: "global" });
  app.get("/slow", slow, (_req, res) => {
    res.json({ done: true });
  });

  // Everything else: 5 requests in ten seconds per client IP.
  app.use(rateLimit({ name: "per-ip", limit: 5, window: "10s" }));
  app.get("/", (req, res) => {
    res.json({ hello: "world", remaining: req.rateLimit.remaining });
  });

  // express.json() fails for a body that is not JSON. Express's own answer would show the stack.
  app.use((error, _req, res, next) => {
    if (res.headersSent || error.status === undefined) next(error);
    else res.status(error.status).json({ error: error.message });
  });

  return app;
}

/** The user that a body names. A client may send anything in its place, so only a string is taken. */
function userOf(body) {
  return typeof body?.user === "string" ? body.user : undefined;
}
