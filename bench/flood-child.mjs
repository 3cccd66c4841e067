import { serve } from "./lib/child.mjs";
import { clientKey, subjects } from "./lib/subjects.mjs";

const [name, maxKeys, keys, how] = process.argv.slice(2);
const batch = 1000;
const limit = 10;

const subject = subjects[name];
const decide = subject.make({ limit, maxKeys: maxKeys === "" ? undefined : Number(maxKeys) });

const isDenied = (decided) => decided === false || decided.allowed === false;

/** Measures only the calls: the keys of a batch are made before it starts. */
async function speed() {
  let ns = 0n;
  for (let from = 0; from < Number(keys); from += batch) {
    const fresh = Array.from({ length: batch }, (_, i) => clientKey(from + i));
    const start = process.hrtime.bigint();
    if (subject.async) for (const key of fresh) await decide(key);
    else for (const key of fresh) decide(key);
    ns += process.hrtime.bigint() - start;
  }
  return { ns: Number(ns) / Number(keys) };
}

async function stalls() {
  for (let i = 0; i < limit; i++) await decide("blocked");
  let longestCallMs = 0;
  let longestGapMs = 0;
  let last = performance.now();
  for (let i = 0; i < Number(keys); i++) {
    const key = clientKey(i);
    const start = performance.now();
    if (subject.async) await decide(key);
    else decide(key);
    const end = performance.now();
    if (end - start > longestCallMs) longestCallMs = end - start;
    if (end - last > longestGapMs) longestGapMs = end - last;
    last = end;
  }
  return { longestCallMs, longestGapMs, size: decide.size?.(), stillBlocked: isDenied(await decide("blocked")) };
}

serve(() => (how === "speed" ? speed() : stalls()));
