import { setImmediate as nextTurn } from "node:timers/promises";
import { cpuUs, serve } from "./lib/child.mjs";
import { injector } from "./lib/inject.mjs";

const [framework, kind, remoteAddress] = process.argv.slice(2);

const { listener } = await import(`./http/${framework}.mjs`);
const inject = injector(await listener(kind), { remoteAddress, headers: { host: "bench" } });
const expected = kind.includes("denied") ? 429 : 200;

/** Measures the CPU time of one request, in microseconds. */
serve(async (requests) => {
  let others = 0;
  const startUs = cpuUs();
  for (let i = 0; i < requests; i++) {
    if ((await inject()) !== expected) others++;
    // What waits for the next turn of the event loop holds its request. A server turns it after a few requests.
    if (i % 16 === 15) await nextTurn();
  }
  const us = cpuUs() - startUs;
  // The first request passes before the limit is reached.
  if (others > 1) throw new Error(`${others} of ${requests} responses were not ${expected}`);
  return us / requests;
});
