import { createApp } from "./app.mjs";

const server = Bun.serve({ fetch: createApp().fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) });
console.log(`Listening on http://127.0.0.1:${server.port}`);
