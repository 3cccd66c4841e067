import { runInNewContext } from "node:vm";
import { serve } from "./lib/child.mjs";
import { median } from "./lib/report.mjs";
import { clientKey, subjects } from "./lib/subjects.mjs";

/** One subject in one case, in a process of its own: warms up, then answers each round with its ns of CPU time a decision, or with the bytes of garbage of one. */
const [name, kase] = process.argv.slice(2);
const roundNs = 60e6;
const neverReached = 1e9;
const draws = 1 << 18;
const garbageDecisions = 200_000;

const subject = subjects[name];
const decide = subject.make({ limit: kase === "denied" ? 10 : neverReached });
const keys = Array.from({ length: kase === "keys" ? 100_000 : 1 }, (_, i) => clientKey(i));
const order = drawn(draws, keys.length);
const run = loop(subject.async === true);
let count = draws;
let at = 0;

function drawn(length, below) {
  let seed = 1;
  return Uint32Array.from({ length }, () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  });
}

/**
 * The loop, in a separate context: V8 does not inline across contexts, so it cannot see that decisions are unused and skip making
 * them.
 */
function loop(wait) {
  return runInNewContext(`${wait ? "async " : ""}(decide, keys, order, from, times) => {
    let allowed = 0;
    for (let i = 0; i < times; i++) {
      const decided = ${wait ? "await " : ""}decide(keys[order[(from + i) % order.length]]);
      if (decided === true || decided.allowed === true) allowed++;
    }
    return allowed;
  }`);
}

async function nsOf(times) {
  const before = process.cpuUsage();
  const allowed = await run(decide, keys, order, at, times);
  const { user, system } = process.cpuUsage(before);
  const ns = (1000 * (user + system)) / times;
  at = (at + times) % draws;
  if (name !== "clock alone" && allowed !== (kase === "denied" ? 0 : times)) {
    throw new Error(`${name} allowed ${allowed} of ${times} requests (${kase})`);
  }
  return ns;
}

async function warmUp() {
  for (const key of keys) for (let i = 0; i < (keys.length === 1 ? 20 : 5); i++) await decide(key);
  for (let i = 0; i < 4; i++) count = Math.max(1000, Math.min(4 * draws, Math.round(roundNs / (await nsOf(count)))));
  return count;
}

/** Needs `--expose-gc`, and a young generation that holds all of these decisions. */
async function garbageOf(times) {
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  await run(decide, keys, order, 0, times);
  return (process.memoryUsage().heapUsed - before) / times;
}

async function garbage() {
  await warmUp();
  const found = [];
  for (let i = 0; i < 5; i++) found.push(await garbageOf(garbageDecisions));
  return median(found);
}

const answers = { "warm up": warmUp, round: () => nsOf(count), garbage };

serve((question) => answers[question]());
