import { dashboard } from "@floodgate/dashboard/express";
import { leakyBucket, rateLimit, slidingWindowCounter, slidingWindowLog, tokenBucket } from "@floodgate/express";
import { prometheus } from "@floodgate/metrics/prometheus";
import express from "express";
import { register } from "prom-client";

/** An Express app that one can watch: metrics at `/metrics`, the dashboard at `/_floodgate`. */
export function createApp() {
  prometheus();

  const app = express();
  // Before the limits, so that looking is never limited.
  app.use("/_floodgate", dashboard({ title: "The observability example", showKeys: true }));
  app.get("/metrics", async (_req, res) => {
    res.type(register.contentType).send(await register.metrics());
  });

  app.use(
    rateLimit({
      // The traffic of this example comes from many addresses, through one proxy.
      clientIp: { trustedHops: 1 },
      rules: [
        { name: "per-client", key: "ip", policy: tokenBucket({ capacity: 20, refill: 10, every: "1s" }) },
        // Shadow mode: this rule counts and reports. It rejects nobody.
        { name: "stricter", key: "ip", policy: slidingWindowCounter({ limit: 30, window: "1m" }), mode: "shadow" },
        {
          name: "login",
          match: { method: "POST", path: "/login" },
          key: "ip",
          policy: slidingWindowLog({ limit: 5, window: "1m" }),
          ban: { after: 10, within: "1m", for: "1m" },
        },
        // A queue: it delays requests, and rejects when it is full.
        { name: "reports", match: { path: "/reports" }, key: "global", policy: leakyBucket({ capacity: 8, leak: 4, every: "1s" }) },
      ],
    }),
  );
  app.post("/login", (_req, res) => {
    res.status(401).json({ ok: false });
  });
  app.get("/reports", (_req, res) => {
    res.json({ done: true });
  });
  app.get("/", (_req, res) => {
    res.json({ hello: "world" });
  });
  return app;
}
