import { rateLimit, slidingWindowLog } from "@floodgate/express";
import { databaseStore } from "@floodgate/store-database";
import express from "express";
import { etcd } from "./etcd.mjs";

const app = express();
const store = databaseStore(etcd(process.env.ETCD_URL ?? "http://127.0.0.1:2379"));
// Apps need not wait so long for a store, but in this example every request must be counted.
app.use(rateLimit({ name: "per-ip", policy: slidingWindowLog({ limit: 5, window: "1m" }), store, timeoutMs: 10_000 }));
app.get("/", (req, res) => {
  res.json({ hello: "world", remaining: req.rateLimit.remaining });
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
process.once("SIGTERM", () => server.close());
