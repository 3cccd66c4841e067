// The built packages in whichever runtime runs this file. CI runs it in the newest Bun and Deno: no tests run there.

import { createRequire } from "node:module";
import { FloodgateError, rateLimit } from "@floodgate/hono";
import { Hono } from "hono";

const { FloodgateError: Required } = createRequire(import.meta.url)("@floodgate/hono");
if (FloodgateError !== Required) throw new Error("import and require load two copies.");

const app = new Hono();
app.use(rateLimit({ limit: 2, window: "365d", clientIp: () => "192.0.2.1" }));
app.get("/", (c) => c.text("hello"));

const statuses = [];
for (let i = 0; i < 3; i++) statuses.push((await app.request("/")).status);
if (statuses.join() !== "200,200,429") throw new Error(`The answers were ${statuses.join(", ")}.`);
console.log(statuses.join(", "));
