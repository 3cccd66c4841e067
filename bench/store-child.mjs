import { runInNewContext } from "node:vm";
import { cpuUs, serve } from "./lib/child.mjs";
import { randomOf } from "./lib/random.mjs";
import { median } from "./lib/report.mjs";
import { clientKey, subjects } from "./lib/subjects.mjs";

/** One subject in one case, in a process of its own: warms up, then answers each round with its ns of CPU time a decision, or with the bytes of garbage of one. */
const [name, kase] = process.argv.slice(2);
const roundNs = 60e6;
const neverReached = 1e9;
const batch = 4096;
const garbageDecisions = 50_000;

const subject = subjects[name];
const decide = subject.make({ limit: kase === "denied" ? 10 : neverReached });
const keyCount = kase === "keys" ? 100_000 : 1;
const run = loop(subject.async === true);
let count = 1 << 16;
const random = randomOf(1);

/** Strings that no Map has seen, as those of a request are: a Map finds a string that it holds by its address alone. */
function freshKeys(amount) {
  return Array.from({ length: amount }, () => clientKey(Math.floor(random() * keyCount)));
}

/**
 * The loop, in a separate context: V8 does not inline across contexts, so it cannot see that decisions are unused and skip making
 * them.
 */
function loop(wait) {
  return runInNewContext(`${wait ? "async " : ""}(decide, keys) => {
    let allowed = 0;
    for (let i = 0; i < keys.length; i++) {
      const decided = ${wait ? "await " : ""}decide(keys[i]);
      if (decided === true || decided.allowed === true) allowed++;
    }
    return allowed;
  }`);
}

/** Measures decisions only: the keys of a batch are made before it starts. */
async function nsOf(times) {
  let us = 0;
  let allowed = 0;
  for (let done = 0; done < times; done += batch) {
    const keys = freshKeys(batch);
    const startUs = cpuUs();
    allowed += await run(decide, keys);
    us += cpuUs() - startUs;
  }
  const made = Math.ceil(times / batch) * batch;
  if (name !== "clock alone" && allowed !== (kase === "denied" ? 0 : made)) {
    throw new Error(`${name} allowed ${allowed} of ${made} requests (${kase})`);
  }
  return (1000 * us) / made;
}

async function warmUp() {
  for (let i = 0; i < keyCount; i++) for (let n = 0; n < (keyCount === 1 ? 20 : 3); n++) await decide(clientKey(i));
  for (let i = 0; i < 4; i++) count = Math.max(batch, Math.round(roundNs / (await nsOf(count))));
  return count;
}

/** Needs `--expose-gc`, and a young generation that holds all of these decisions. */
async function garbageOf(times) {
  const keys = freshKeys(times);
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  await run(decide, keys);
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
