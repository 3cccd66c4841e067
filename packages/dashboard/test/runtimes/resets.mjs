// A Hono app that counts the requests it serves, as Bun and Deno serve it.
import { rateLimit } from "@floodgate/hono";
import { Hono } from "hono";
import { serve } from "./serve.mjs";

let served = 0;
const limit = rateLimit({ limit: 1000, window: "1d", onMissingKey: "skip" });

const app = new Hono();
app.get("/", limit, (c) => c.text(`${++served}`));
app.get("/served", async (c) => c.json({ served, counted: 1000 - (await limit.limiter.peek("127.0.0.1")).remaining }));
serve(app);
