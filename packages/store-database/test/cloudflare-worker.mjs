// A Worker with the drivers of D1 and of Durable Objects.
import { env, waitUntil } from "cloudflare:workers";
import { d1, d1Migration } from "../src/d1.js";
import { durableObjects } from "../src/durable-object.js";
import { answerWith } from "./worker.mjs";

export { FloodgateObject } from "../src/durable-object.js";

const drivers = {
  none: () => undefined,
  d1: () => d1(env.DB, { waitUntil }),
  nowhere: () => d1(env.DB, { table: "nowhere" }),
  object: () => durableObjects(env.FLOODGATE, { waitUntil }),
  sharded: () => durableObjects(env.FLOODGATE, { waitUntil, shardOf: (key) => key }),
};

const migrate = async () => Response.json(await env.DB.exec(d1Migration().replace(/\n(?!CREATE)/g, " ")));

export default { fetch: (request) => (request.url.endsWith("/d1/migrate") ? migrate() : answerWith(drivers, request)) };
