import { rateLimit } from "@floodgate/express";
import express from "express";
import { sqliteStore } from "./sqlite-store.mjs";

const app = express();
const store = sqliteStore(process.env.FILE ?? "limits.db");
app.use(rateLimit({ name: "per-ip", limit: 5, window: "1m", store }));
app.get("/", (req, res) => {
  res.json({ hello: "world", remaining: req.rateLimit.remaining });
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
process.once("SIGTERM", () => server.close(() => store.close()));
