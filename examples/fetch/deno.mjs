import { createApp } from "./app.mjs";

const onListen = ({ port }) => console.log(`Listening on http://127.0.0.1:${port}`);
Deno.serve({ hostname: "127.0.0.1", port: Number(Deno.env.get("PORT") ?? 3000), onListen }, createApp().fetch);
