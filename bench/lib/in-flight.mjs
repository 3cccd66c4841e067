import { performance } from "node:perf_hooks";
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
