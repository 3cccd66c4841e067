// Simulates many processes that share one Redis, on a virtual clock. The store, its leases, its batches and its deny cache are the real ones,
// and a real redis-server runs their scripts, whose TIME is the virtual one. Only the network is made up: each command travels for a time
// that is drawn, and waits until the server has done those before it.
import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import { serve } from "./lib/child.mjs";
import { randomOf } from "./lib/random.mjs";

const [port] = process.argv.slice(2).map(Number);
/** One step of the virtual clock. */
const tickMs = 0.1;
/** What a decision alone costs the server, a command of several, and each key in it. `npm run bench -- redis-script` measures the first one. */
const [aloneMs, severalMs, keyMs] = [0.012, 0.02, 0.004];

const redis = new Redis(port);
await redis.ping();

let nowMs = Date.UTC(2026, 0, 1);
/** What happens in which tick. */
const agenda = new Map();
const tickOf = (ms) => Math.ceil(ms / tickMs - 1e-6);
function at(ms, run) {
  const tick = Math.max(tickOf(ms), tickOf(nowMs) + 1);
  const others = agenda.get(tick);
  if (others === undefined) agenda.set(tick, [run]);
  else others.push(run);
}

Date.now = () => Math.floor(nowMs);
performance.now = () => nowMs;
globalThis.setTimeout = (run, ms = 0, ...args) => {
  const timer = { isOff: false, unref: () => timer, ref: () => timer, hasRef: () => false };
  at(nowMs + Math.max(1, ms), () => timer.isOff || run(...args));
  return timer;
};
globalThis.clearTimeout = (timer) => {
  if (timer) timer.isOff = true;
};

// After the clock, so that no module keeps the real one.
const { createLimiter, fixedWindow, tokenBucket } = await import("@floodgate/core");
const { redisStore } = await import("@floodgate/store-redis");

/** The same numbers each time. */
const random = randomOf(1);

/** Commands of scripts: on the virtual clock, which keys do not expire by. */
const virtualCall = `(function(...)
  local command = { ... }
  if command[1] == 'TIME' then return redis.call('MGET', 'virtual:s', 'virtual:us') end
  if command[1] == 'PEXPIRE' then command[3] = 3600000 end
  for i = 4, #command do if command[i] == 'PX' then command[i + 1] = 3600000 end end
  return redis.call(unpack(command))
end)`;

/** The server: runs commands in the order of their arrival. */
class Server {
  commands = 0;
  #freeMs = 0;
  #arrived = [];
  #scripts = new Map();

  send(name, args, oneWayMs) {
    return new Promise((resolve, reject) => {
      const backMs = oneWayMs();
      const outMs = oneWayMs();
      at(nowMs + outMs, () => this.#arrived.push({ name, args, backMs, resolve, reject }));
    });
  }

  /** Runs what has arrived. */
  async run() {
    const arrived = this.#arrived;
    if (arrived.length === 0) return;
    this.#arrived = [];
    this.commands += arrived.length;
    const us = Math.round(nowMs * 1000);
    redis.mset("virtual:s", Math.floor(us / 1e6), "virtual:us", us % 1e6);
    await Promise.all(
      arrived.map(async ({ name, args, backMs, resolve, reject }) => {
        const [, keys] = args;
        // The script of a decision alone has at most five arguments.
        this.#freeMs = Math.max(this.#freeMs, nowMs) + (args.length <= 6 ? aloneMs : severalMs + Number(keys) * keyMs);
        const arrivesMs = this.#freeMs + backMs;
        try {
          const reply = await this.#reply(name, args);
          at(arrivesMs, () => resolve(reply));
        } catch (error) {
          at(arrivesMs, () => reject(error));
        }
      }),
    );
  }

  #reply(name, [script, ...args]) {
    if (name === "eval") {
      const source = script.replace("redis.call", virtualCall);
      this.#scripts.set(createHash("sha1").update(script).digest("hex"), createHash("sha1").update(source).digest("hex"));
      return redis.eval(source, ...args);
    }
    const sha = this.#scripts.get(script);
    if (sha === undefined) return Promise.reject(new Error("NOSCRIPT No matching script."));
    return redis.evalsha(sha, ...args);
  }
}

/** A process: its store and limiter, and what it has been told. */
function processOf(server, { policy, lease, roundTripMs, timeoutMs }) {
  // A round trip has a least time, and now and then a much longer one.
  const oneWayMs = () => (roundTripMs / 2) * (1 + 0.1 * -Math.log(1 - random()) + (random() < 0.001 ? 5 : 0));
  const client = {
    status: "ready",
    options: {},
    connect: async () => {},
    evalsha: (...args) => server.send("evalsha", args, oneWayMs),
    eval: (...args) => server.send("eval", args, oneWayMs),
  };
  return createLimiter({ name: "hot", policy, store: redisStore(client, { lease }), timeoutMs, onStoreError: "deny", onEvent: () => {} });
}

/** @returns commands and decisions of the whole seconds after the first one, what was admitted in each, and the times of decisions. */
async function simulate({ processes, perSecond, limit, bucket = false, lease, roundTripsMs, timeoutMs = 100, seconds }) {
  await redis.flushall();
  agenda.clear();
  nowMs = (Math.floor(nowMs / 1000) + 10) * 1000;
  const server = new Server();
  const policy = bucket ? tokenBucket({ capacity: limit, refill: limit, every: "1s" }) : fixedWindow({ limit, window: "1s" });
  const limiters = Array.from({ length: processes }, (_, i) => {
    return processOf(server, { policy, lease, roundTripMs: roundTripsMs[i % roundTripsMs.length], timeoutMs });
  });
  const startMs = nowMs;
  const admitted = new Map();
  const waits = new Map();
  let [decisions, failed, commandsBefore] = [0, 0, 0];
  const decided = (askedMs, { allowed, atMs, degraded }) => {
    const second = Math.floor(atMs / 1000);
    if (allowed) admitted.set(second, (admitted.get(second) ?? 0) + 1);
    if (askedMs < startMs + 1000) return;
    if (degraded) failed++;
    const waitMs = Math.round((nowMs - askedMs) / tickMs) * tickMs;
    waits.set(waitMs, (waits.get(waitMs) ?? 0) + 1);
  };
  const endMs = startMs + (seconds + 1) * 1000;
  let owed = 0;
  for (let tick = tickOf(startMs); nowMs < endMs; tick++) {
    nowMs = tick * tickMs;
    if (tick === tickOf(startMs + 1000)) [decisions, commandsBefore] = [0, server.commands];
    for (const run of agenda.get(tick) ?? []) run();
    agenda.delete(tick);
    await server.run();
    // In the first second, the load rises.
    const rising = Math.min(1, (nowMs - startMs) / 1000);
    for (owed += rising * perSecond * tickMs * 0.001; owed >= 1; owed--) {
      const askedMs = nowMs;
      decisions++;
      const made = limiters[Math.floor(random() * processes)].consume("hot");
      if (made instanceof Promise) made.then((decision) => decided(askedMs, decision));
      else decided(askedMs, made);
    }
    await new Promise(setImmediate);
  }
  const whole = Array.from({ length: seconds }, (_, i) => admitted.get(startMs / 1000 + 1 + i) ?? 0);
  return {
    decisions,
    commands: server.commands - commandsBefore,
    failed,
    admitted: whole,
    waits: [...waits].sort(([a], [b]) => a - b),
  };
}

serve(simulate);
