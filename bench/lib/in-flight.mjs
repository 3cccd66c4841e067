import { performance } from "node:perf_hooks";
import { createLimiter, slidingWindowCounter } from "@floodgate/core";
import { cpuUs } from "./child.mjs";

/** Asks as often as it can for some seconds, with `inFlight` calls at a time, of keys in turn. */
export async function askInFlight(ask, { inFlight, seconds, keys }) {
  let asked = 0;
  const startMs = performance.now();
  const startUs = cpuUs();
  const askInTurn = async () => {
    while (performance.now() - startMs < seconds * 1000) {
      await ask(`key-${asked++ % keys}`);
      // What is decided at once must not keep the event loop from reading what arrives.
      if (asked % 1000 === 0) await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, askInTurn));
  return { asked, cpu: cpuUs() - startUs, perSecond: (asked / (performance.now() - startMs)) * 1000 };
}

/** No request is rejected: a rejection would be cheaper. */
export const neverReached = 1_000_000_000;

/** Asks a store for a decision of a key. */
export function askOf(store) {
  const policy = slidingWindowCounter({ limit: neverReached, window: "1h" });
  const limiter = createLimiter({ name: "bench", policy, store, timeoutMs: 60_000, onStoreError: "deny" });
  return async (key) => {
    if ((await limiter.consume(key)).degraded) throw new Error("The store failed.");
  };
}
