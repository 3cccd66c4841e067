import { memoryStore } from "@floodgate/express";
import { redisStore } from "@floodgate/store-redis";
import { Redis } from "ioredis";
import { createApp } from "./app.mjs";
import { startUpstream } from "./upstream.mjs";

const tenants = new Map([
  ["key-berlin", { id: "berlin", zone: "Europe/Berlin", dollars: 5 }],
  // An estimate of 1000 tokens of output is 0.015 dollars.
  ["key-kiritimati", { id: "kiritimati", zone: "Pacific/Kiritimati", dollars: 0.0165 }],
]);
const { REDIS_URL, UPSTREAM, PORT = 3000 } = process.env;
const upstream = UPSTREAM ?? `http://127.0.0.1:${(await startUpstream()).address().port}`;
const store = REDIS_URL === undefined ? memoryStore() : redisStore(new Redis(REDIS_URL));

function onEvent(event) {
  if (event.type === "settled") console.log(`${event.key} is charged ${event.cost} of ${event.name}`);
  else if (event.type === "refunded") console.log(`${event.key} gets back ${event.units} of ${event.name}`);
}

const server = createApp({ upstream, tenants, store, onEvent }).listen(Number(PORT), "127.0.0.1", () => {
  console.log(`Listening on http://127.0.0.1:${server.address().port}`);
});
