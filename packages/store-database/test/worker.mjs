// A Worker with both drivers. Its stores live as long as its isolate.
import { waitUntil } from "cloudflare:workers";
import { createLimiter } from "@floodgate/core";
import { d1, d1Migration } from "../src/d1.js";
import { durableObjects, FloodgateObject } from "../src/durable-object.js";
import { databaseStore } from "../src/index.js";

export { FloodgateObject };

const drivers = {
  d1: ({ DB }) => d1(DB, { waitUntil }),
  nowhere: ({ DB }) => d1(DB, { table: "nowhere" }),
  object: ({ FLOODGATE }) => durableObjects(FLOODGATE, { waitUntil }),
  sharded: ({ FLOODGATE }) => durableObjects(FLOODGATE, { waitUntil, shardOf: (key) => key }),
};

const made = new Map();
const once = (name, make) => made.get(name) ?? made.set(name, make()).get(name);

const calls = {
  migrate: (_, __, { DB }) => DB.exec(d1Migration().replace(/\n(?!CREATE)/g, " ")),
  load: (driver, keys) => driver.load(keys),
  swap: (driver, { changes, valid }) => driver.swap(changes, valid),
  sweep: (driver, most) => driver.sweep(most),
  async consume(driver, { limit, key = "one", times = 1, timeoutMs = 60_000 }, { database }) {
    const store = once(database, () => databaseStore(driver));
    const limiter = once(`${database} ${limit.name} ${timeoutMs}`, () =>
      createLimiter({ ...limit, store, timeoutMs, onStoreError: "deny" }),
    );
    const decisions = await Promise.all(Array.from({ length: times }, () => limiter.consume(key)));
    const count = (which) => decisions.filter(which).length;
    return { allowed: count(({ allowed }) => allowed), degraded: count(({ degraded }) => degraded) };
  },
};

export default {
  async fetch(request, env) {
    const [, database, call] = new URL(request.url).pathname.split("/");
    try {
      const answer = await calls[call](drivers[database](env), await request.json(), { ...env, database });
      return Response.json(answer ?? null);
    } catch ({ code, message }) {
      return Response.json({ code, message }, { status: 500 });
    }
  },
};
