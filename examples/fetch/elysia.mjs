// Elysia on Bun: `check` in a hook, which gets Bun's server. The routes of app.mjs are mounted behind it.
import { rateLimit } from "@floodgate/fetch";
import { Elysia } from "elysia";
import { createApp } from "./app.mjs";

const limit = rateLimit({ name: "all", limit: 1000, window: "1m" });
const app = createApp();

// By default, Elysia takes hosts to be long, and `Host: h` changes the path that it serves.
const { server } = new Elysia({ handler: { standardHostname: false } })
  .onRequest(async ({ request, server, set }) => {
    const { response, headers } = await limit.check(request, server);
    if (response) return response;
    Object.assign(set.headers, Object.fromEntries(headers));
  })
  .get("/elysia", () => ({ hello: "Elysia" }))
  .all("/*", ({ request, server }) => app.fetch(request, server), { parse: "none" })
  .listen({ hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) });
console.log(`Listening on http://127.0.0.1:${server.port}`);
