// A Hono app with a dashboard, as Bun and Deno serve it.
import { dashboard } from "@floodgate/dashboard/hono";
import { rateLimit } from "@floodgate/hono";
import { Hono } from "hono";

const app = new Hono();
app.route("/f", dashboard());
app.use(rateLimit({ name: "web", limit: 1000, window: "1d" }));
app.get("/", (c) => c.text("hello"));

const listening = (port) => console.log(`http://127.0.0.1:${port}`);
if (globalThis.Bun !== undefined) {
  const { port } = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: app.fetch });
  listening(port);
} else Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: ({ port }) => listening(port) }, app.fetch);
