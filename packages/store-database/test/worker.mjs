// Answers the questions of `workers.ts`, in the runtime that is tested. Its stores live as long as its isolate.
import { concurrency, consumeAll, createLimiter, fixedWindow } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { storeConformance } from "../../conformance/src/store.js";
import { databaseStore } from "../src/index.js";
import { compareWithMemory } from "./compare-with-memory.js";

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
  load: (driver, keys) => driver.load(keys),
  swap: (driver, { changes, valid }) => driver.swap(changes, valid),
  sweep: (driver, most) => driver.sweep(most),
  compare: (driver, runs) => compareWithMemory(() => driver, runs),
  test: (driver, { index, effort }, database) => once(`${database} suite`, () => suiteOf(driver, effort))[index](),
  /** Requests of one moment, each with a key of its own and one that all share. */
  async shared(driver, requests) {
    const store = databaseStore(driver, { prefix: "shared" });
    const limiterOf = (name, limit) =>
      createLimiter({ name, policy: fixedWindow({ limit, window: "365d" }), store, timeoutMs: 60_000, onStoreError: "deny" });
    const [all, each] = [limiterOf("all", 150), limiterOf("each", 1)];
    const asked = Array.from({ length: requests }, (_, i) =>
      consumeAll([
        { limiter: all, key: "global" },
        { limiter: each, key: `client-${i}` },
      ]),
    );
    return { allowed: (await Promise.all(asked)).filter(({ allowed }) => allowed).length };
  },
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

/** @param drivers a function for each that makes it. */
export async function answerWith(drivers, request) {
  const [, database, call] = new URL(request.url).pathname.split("/");
  try {
    const driver = await once(`${database} driver`, drivers[database]);
    return Response.json((await calls[call](driver, await request.json(), database)) ?? null);
  } catch ({ code, message }) {
    return Response.json({ code, message }, { status: 500 });
  }
}
