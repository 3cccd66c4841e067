import { createLimiter, slidingWindowCounter } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { addedSince, cpuUs, heldMemory, serve } from "./lib/child.mjs";
import { clientKey, subjects } from "./lib/subjects.mjs";

/** Many keys in memory, in a process of their own. */
const [what, ...args] = process.argv.slice(2);
let kept;

const kinds = {
  /** The memory that keys take. */
  async memory(name, keys) {
    clientKey(0);
    const before = heldMemory();
    const decide = subjects[name].make({ limit: 100, maxKeys: Number(keys) });
    for (let i = 0; i < Number(keys); i++) await decide(clientKey(i));
    const added = addedSince(before);
    kept = decide;
    if ((await kept(clientKey(0))) === false) throw new Error(`${name} denied a key on its second request`);
    return added;
  },

  /** The ns of a fresh key. Measures only the calls: the keys of a batch are made before it starts. */
  async speed(name, keys, maxKeys) {
    const subject = subjects[name];
    const decide = subject.make({ limit: floodLimit, maxKeys: boundOf(maxKeys) });
    let ns = 0n;
    for (let from = 0; from < Number(keys); from += 1000) {
      const fresh = Array.from({ length: 1000 }, (_, i) => clientKey(from + i));
      const start = process.hrtime.bigint();
      if (subject.async) for (const key of fresh) await decide(key);
      else for (const key of fresh) decide(key);
      ns += process.hrtime.bigint() - start;
    }
    return Number(ns) / Number(keys);
  },

  async stalls(name, keys, maxKeys) {
    const subject = subjects[name];
    const decide = subject.make({ limit: floodLimit, maxKeys: boundOf(maxKeys) });
    for (let i = 0; i < floodLimit; i++) await decide("blocked");
    let longestCallMs = 0;
    let longestGapMs = 0;
    let last = performance.now();
    for (let i = 0; i < Number(keys); i++) {
      const key = clientKey(i);
      const start = performance.now();
      if (subject.async) await decide(key);
      else decide(key);
      const end = performance.now();
      longestCallMs = Math.max(longestCallMs, end - start);
      longestGapMs = Math.max(longestGapMs, end - last);
      last = end;
    }
    const decided = await decide("blocked");
    return { longestCallMs, longestGapMs, size: decide.size?.(), stillBlocked: decided === false || decided.allowed === false };
  },

  /** Fresh keys on a store that is full of keys of the same limit, or at limit 0 on a bare Map: CPU time a key, and the longest batch. */
  full(limit, maxKeys, keys) {
    const batch = 100;
    const most = Number(maxKeys);
    let made = 0;
    const fresh = () => Array.from({ length: batch }, () => clientKey(made++));
    const { decide, size } = limit === "0" ? boundedMap(most) : fullStore(Number(limit), most);
    while (made < most) for (const key of fresh()) decide(key);
    // Warm-up: the Maps have seen deletions, and the code is optimised.
    for (let i = 0; i < 20_000; i += batch) for (const key of fresh()) decide(key);
    let us = 0;
    let longestMs = 0;
    for (let i = 0; i < Number(keys); i += batch) {
      const some = fresh();
      const start = performance.now();
      const startUs = cpuUs();
      for (const key of some) decide(key);
      us += cpuUs() - startUs;
      longestMs = Math.max(longestMs, performance.now() - start);
    }
    if (size() > most) throw new Error(`${size()} keys where there may be ${maxKeys}`);
    return { ns: (1000 * us) / Number(keys), longestMs };
  },
};

function fullStore(limit, maxKeys) {
  const store = memoryStore({ maxKeys, clock: () => 1_789_948_800_000 });
  const limiter = createLimiter({ name: "api", policy: slidingWindowCounter({ limit, window: "1h" }), store });
  return { decide: (key) => limiter.consume(key), size: () => store.size };
}

/** A Map that deletes its oldest key for each new one. It remembers that key, because a Map steps over all deleted keys to find it. */
function boundedMap(maxKeys) {
  const counts = new Map();
  const oldest = counts.keys();
  const decide = (key) => {
    if (counts.size >= maxKeys) counts.delete(oldest.next().value);
    counts.set(key, { count: 1, reset: 1 });
  };
  return { decide, size: () => counts.size };
}

const floodLimit = 10;
const boundOf = (maxKeys) => (maxKeys === "" ? undefined : Number(maxKeys));

serve(() => kinds[what](...args));
