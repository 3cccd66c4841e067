import { serve } from "srvx";
import { createApp } from "./app.mjs";

const server = serve({ ...createApp(), hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000), silent: true });
await server.ready();
console.log(`Listening on ${server.url.replace(/\/$/, "")}`);
