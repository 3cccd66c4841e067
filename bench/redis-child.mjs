import { once } from "node:events";
import { Redis } from "ioredis";
import { cpuUs, serve } from "./lib/child.mjs";
import { quantile } from "./lib/report.mjs";
import { clientKey } from "./lib/subjects.mjs";
import { subjects } from "./redis/subjects.mjs";

/** One subject in its own process, with one connection. Measures it with a number of decisions in flight. */
const [name, port] = process.argv.slice(2);
/** Requests per key before the measurement. */
const visits = subjects[name].keys > 1000 ? 2 : 10;
/** A process reads for a second what others announce, before it relies on it. Then each key is rejected once more. */
const listensMs = subjects[name].denied && subjects[name].keys > 1000 ? 1200 : 0;
/** One of this many decisions is timed: reading the clock takes longer than a rejection in process. */
const timed = 7;
/** The event loop turns at least this often, as in a server. */
const turnMs = 1;

const redis = new Redis({ host: "127.0.0.1", port: Number(port) });
await once(redis, "ready");
const subject = subjects[name];
const keys = Array.from({ length: subject.keys ?? 1000 }, (_, i) => clientKey(i));
const { decide, allowed } = await subject.make(redis);

/** Some libraries return a rejection, others throw it. */
async function visitKeys() {
  const visit = () => Promise.allSettled(keys.map((key) => decide(key)));
  for (let i = 0; i < visits; i++) await visit();
  if (listensMs > 0) {
    await new Promise((resolve) => setTimeout(resolve, listensMs));
    await visit();
  }
  return keys.length;
}

async function load({ inFlight, seconds }) {
  const latencies = [];
  let decisions = 0;
  let passed = 0;
  let nowMs = performance.now();
  let turnedMs = nowMs;
  let turn;
  const startMs = nowMs;
  const endMs = startMs + seconds * 1000;
  const nextTurn = () =>
    new Promise((resolve) => {
      setImmediate(() => {
        turnedMs = performance.now();
        turn = undefined;
        resolve();
      });
    });
  const one = async () => {
    while (nowMs < endMs) {
      if (turn !== undefined) await turn;
      const key = keys[Math.floor(Math.random() * keys.length)];
      const isTimed = decisions++ % timed === 0;
      const sentMs = isTimed ? performance.now() : 0;
      let told;
      try {
        told = await decide(key);
      } catch (rejection) {
        if (rejection instanceof Error) throw rejection;
        told = rejection;
      }
      if (allowed(told)) passed++;
      if (!isTimed) continue;
      nowMs = performance.now();
      latencies.push(nowMs - sentMs);
      if (turn === undefined && nowMs - turnedMs > turnMs) turn = nextTurn();
    }
  };
  const startUs = cpuUs();
  await Promise.all(Array.from({ length: inFlight }, one));
  const us = cpuUs() - startUs;
  const elapsedMs = performance.now() - startMs;
  // Where the hour turns just now, each key has another request.
  if (subject.denied ? passed > keys.length : passed < decisions) throw new Error(`${name} let ${passed} of ${decisions} requests pass`);
  return {
    decisions,
    perSecond: (decisions * 1000) / elapsedMs,
    clientUs: us / decisions,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
  };
}

serve((question) => (question === "visit keys" ? visitKeys() : load(question)));
