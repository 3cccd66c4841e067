import { serve } from "@hono/node-server";
import { createApp } from "./app.mjs";

serve({ fetch: createApp().fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) }, ({ port }) => {
  console.log(`Listening on http://127.0.0.1:${port}`);
});
