// A Hono app with a dashboard, as Bun and Deno serve it.
import { dashboard } from "@floodgate/dashboard/hono";
import { rateLimit } from "@floodgate/hono";
import { Hono } from "hono";
import { serve } from "./serve.mjs";

const app = new Hono();
app.route("/f", dashboard());
app.use(rateLimit({ name: "web", limit: 1000, window: "1d" }));
app.get("/", (c) => c.text("hello"));
serve(app);
