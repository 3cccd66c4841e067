// A Worker with both drivers. Its stores live as long as its isolate.
import { env, waitUntil } from "cloudflare:workers";
import { concurrency, createLimiter, fixedWindow } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { storeConformance } from "../../conformance/src/store.js";
import { d1, d1Migration } from "../src/d1.js";
import { durableObjects, FloodgateObject } from "../src/durable-object.js";
import { databaseStore } from "../src/index.js";
import { compareWithMemory } from "./compare-with-memory.js";

export { FloodgateObject };

const drivers = {
  none: () => undefined,
  d1: () => d1(env.DB, { waitUntil }),
  nowhere: () => d1(env.DB, { table: "nowhere" }),
  object: () => durableObjects(env.FLOODGATE, { waitUntil }),
  sharded: () => durableObjects(env.FLOODGATE, { waitUntil, shardOf: (key) => key }),
};

const made = new Map();
const once = (name, make) => made.get(name) ?? made.set(name, make()).get(name);

/** The tests of the suite of stores, in its order. */
function suiteOf(driver, effort) {
  const tests = [];
  const runner = { describe: (_, body) => body(), it: (_, body) => tests.push(body) };
  const makeStore = (clock) => databaseStore(driver, { clock, denyCache: false, prefix: `run-${crypto.randomUUID()}` });
  storeConformance(runner, { name: "", makeStore, effort });
  return tests;
}

/** A store without deadlines of its own, which never answers for one key. */
const memory = memoryStore();
const events = new EventTarget();
const names = ["consume", "consumeAll", "peek", "settle", "renew", "reset", "block", "unblock", "keyState"];
async function answer(name, limit, key, ...details) {
  if (name === "renew") events.dispatchEvent(new Event("renewed"));
  return key === "never" ? new Promise(() => undefined) : memory[name](limit, key, ...details);
}
const store = { mode: "async", ...Object.fromEntries(names.map((name) => [name, (...details) => answer(name, ...details)])) };
const brief = createLimiter({ name: "brief", policy: fixedWindow({ limit: 5, window: "1m" }), store, timeoutMs: 50 });
const slots = createLimiter({ name: "slots", policy: concurrency({ limit: 5, hold: "100ms" }), store });

const calls = {
  brief: (_, key) => brief.consume(key),
  async abandonSlot() {
    await new Promise((taken) => void slots.run("one", () => new Promise(() => taken())));
  },
  async renewSlot() {
    const renewed = new Promise((resolve) => events.addEventListener("renewed", resolve, { once: true }));
    await slots.run("one", () => renewed);
  },
  migrate: () => env.DB.exec(d1Migration().replace(/\n(?!CREATE)/g, " ")),
  load: (driver, keys) => driver.load(keys),
  swap: (driver, { changes, valid }) => driver.swap(changes, valid),
  sweep: (driver, most) => driver.sweep(most),
  compare: (driver, runs) => compareWithMemory(() => driver, runs),
  test: (driver, { index, effort }, database) => once(`${database} suite`, () => suiteOf(driver, effort))[index](),
  async consume(driver, { limit, key = "one", times = 1, timeoutMs = 60_000 }, database) {
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
  async fetch(request) {
    const [, database, call] = new URL(request.url).pathname.split("/");
    try {
      const driver = once(`${database} driver`, drivers[database]);
      return Response.json((await calls[call](driver, await request.json(), database)) ?? null);
    } catch ({ code, message }) {
      return Response.json({ code, message }, { status: 500 });
    }
  },
};
